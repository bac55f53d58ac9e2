package web

import (
	"fmt"
	"html"
	"html/template"
	"net/url"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"time"

	"tendril/api"
	"tendril/internal/host/terminal"
	"tendril/internal/observe/health"
	"tendril/queue"
)

var functions = template.FuncMap{
	"asset": assetPath, "segment": url.PathEscape, "count": countText, "number": number, "ago": ago,
	"causehead": func(c health.Cause) string { return c.Head(time.Now()) }, "in": in,
	"age": age, "seconds": seconds, "secondsago": secondsAgo, "ms": milliseconds, "percent": percent, "bytes": bytesText, "plural": plural,
	"exact": exact, "tone": tone, "lower": strings.ToLower, "pair": pair,
	"preview": preview, "runstate": runState, "processstate": processState, "since": since,
	"measured": measured, "sizes": scaledText, "protection": protectionText, "applied": appliedText, "colored": colored, "clock": clock,
	"before": before, "words": api.StateText, "exactcount": exactCount, "queuename": queue.NameInARN,
	"shell": terminal.ShellWord, "head": head, "lastattempt": lastAttempt, "rowid": rowID, "linked": linked, "persecond": perSecond,
}

func number(n int64) string {
	switch {
	case n < 0:
		return "-" + number(-n)
	case n < 1000:
		return strconv.FormatInt(n, 10)
	case n < 10_000:
		return fmt.Sprintf("%d,%03d", n/1000, n%1000)
	case n < 1_000_000:
		return fmt.Sprintf("%.1f k", float64(n/100)/10)
	case n < 1_000_000_000:
		return fmt.Sprintf("%.1f M", float64(n/100_000)/10)
	}
	return fmt.Sprintf("%.1f G", float64(n/100_000_000)/10)
}

func countText(n any) template.HTML {
	value := reflect.ValueOf(n).Int()
	text := number(value)
	if exact := strconv.FormatInt(value, 10); strings.ContainsAny(text, "kMG") {
		return template.HTML(`<span title="` + exact + `">` + text + `</span>`)
	}
	return template.HTML(text)
}

func age(d time.Duration) string {
	switch {
	case d < time.Second:
		return "0 s"
	case d < time.Minute:
		return fmt.Sprintf("%d s", d/time.Second)
	case d < time.Hour:
		return fmt.Sprintf("%d min", d/time.Minute)
	case d < 24*time.Hour:
		return fmt.Sprintf("%d h %d min", d/time.Hour, d%time.Hour/time.Minute)
	}
	return fmt.Sprintf("%d d %d h", d/(24*time.Hour), d%(24*time.Hour)/time.Hour)
}

func seconds(s float64) string {
	if s <= 0 {
		return "–"
	}
	return age(time.Duration(s * float64(time.Second)))
}

func secondsAgo(s float64) string { return age(time.Duration(s*float64(time.Second))) + " ago" }

// milliseconds rounds down, so that 59.999 s is not shown as 60.00 s.
func milliseconds(ms int64) string {
	switch {
	case ms < 1000:
		return fmt.Sprintf("%d ms", ms)
	case ms < 60_000:
		return fmt.Sprintf("%.2f s", float64(ms/10)/100)
	}
	return age(time.Duration(ms) * time.Millisecond)
}

func exact(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05 UTC") }

func since(t time.Time) template.HTML { return moment(t, age(time.Since(t))) }

func ago(t time.Time) template.HTML { return moment(t, age(time.Since(t))+" ago") }

func in(t time.Time) template.HTML {
	left := time.Until(t)
	if left <= 0 {
		return moment(t, "now")
	}
	return moment(t, "in "+age(left+time.Second-1))
}

func moment(t time.Time, text string) template.HTML {
	if t.IsZero() {
		return "–"
	}
	return template.HTML(`<time datetime="` + t.UTC().Format(time.RFC3339) + `" title="` + exact(t) + `">` + text + `</time>`)
}

func percent(share float64) string {
	if share > 0 && share < 0.01 {
		return "< 1 %"
	}
	return fmt.Sprintf("%.0f %%", 100*share)
}

func bytesText(count any) string {
	switch n := reflect.ValueOf(count).Int(); {
	case n < 1<<10:
		return fmt.Sprintf("%d B", n)
	case n < 1<<20:
		return fmt.Sprintf("%.1f KiB", float64(n)/(1<<10))
	default:
		return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20))
	}
}

func plural(n any, noun string) string {
	text := fmt.Sprint(n)
	if text == "1" {
		return "1 " + noun
	}
	return text + " " + noun + "s"
}

func tone(state any) string {
	switch word := strings.ToLower(fmt.Sprint(state)); word {
	case "ok", "running", "done", "closed", "ready", "success", "live", "scheduled":
		return "ok"
	case "info", "starting", "preparing", "finishing", "delayed", "in_flight", "in flight", "leading":
		return "info"
	case "warning", "paused", "draining", "half-open", "stopping", "unreached", "skipped", "rolled back",
		"not ready", "restarting":
		return "warning"
	case "degraded", "severe", "failed", "open", "failing", "crashed", "dead", "given up", "damaged":
		return "failing"
	}
	return "none"
}

func pair(first, second any) [2]any { return [2]any{first, second} }

func head(text string) string {
	if len(text) <= maxShownBody {
		return text
	}
	return strings.ToValidUTF8(text[:maxShownBody], "") + "…"
}

const maxPreview = 120

func preview(text string) string {
	n := 0
	for i := range text {
		n++
		if n > maxPreview {
			return oneLine(text[:i]) + "…"
		}
	}
	return oneLine(text)
}

var messageID = regexp.MustCompile(`\b[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\b`)

func linked(text string) template.HTML {
	return template.HTML(messageID.ReplaceAllString(html.EscapeString(text), `<a href="/messages/$0">$0</a>`))
}

// colorSequence matches the sequences for colors and terminal titles in log lines, whose escape characters are escaped.
var colorSequence = regexp.MustCompile(`\\x1b\[([0-9;:]*)m|\\x1b\][^\\]*\\a`)

// colorClasses are the classes of the colors 30 to 37 and 90 to 97; black and white use the text color.
var colorClasses = [8]string{1: "red", 2: "green", 3: "yellow", 4: "blue", 5: "magenta", 6: "cyan"}

func colored(line string) template.HTML {
	var out strings.Builder
	class, at := "", 0
	for _, m := range colorSequence.FindAllStringSubmatchIndex(line, -1) {
		out.WriteString(withClass(class, line[at:m[0]]))
		at = m[1]
		if m[2] >= 0 {
			class = colorAfter(class, line[m[2]:m[3]])
		}
	}
	out.WriteString(withClass(class, line[at:]))
	return template.HTML(out.String())
}

func withClass(class, text string) string {
	text = html.EscapeString(text)
	if class == "" || text == "" {
		return text
	}
	return `<span class="ansi ` + class + `">` + text + `</span>`
}

// colorAfter ignores backgrounds, and treats extended colors as none.
func colorAfter(class, codes string) string {
	const foreground, background = 38, 48 // followed by 5 and a number, or by 2 and three numbers
	for list := strings.Split(codes, ";"); len(list) > 0; {
		n, _ := strconv.Atoi(list[0])
		parameters := 0
		if n == foreground || n == background {
			parameters = 4
			if len(list) > 1 && list[1] == "5" {
				parameters = 2
			}
		}

		switch {
		case n == 0 || n == 39 || n == foreground:
			class = ""
		case n >= 30 && n <= 37, n >= 90 && n <= 97:
			class = colorClasses[n%10]
		}
		list = list[min(1+parameters, len(list)):]
	}
	return class
}

func clock(t time.Time) template.HTML { return moment(t, t.Local().Format(time.TimeOnly)) }

func before(text, separator string) string {
	first, _, _ := strings.Cut(text, separator)
	return first
}

func oneLine(text string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return ' '
		}
		return r
	}, text)
}

func exactCount(n any) string {
	digits := fmt.Sprint(n)
	for i := len(digits) - 3; i > 0; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return digits
}

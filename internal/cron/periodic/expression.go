package periodic

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"tendril/internal/config/yamlfile"
)

type field struct {
	name     string
	low, top int
	names    []string
	example  string
}

func fields() [5]field {
	return [5]field{
		{"minute", 0, 59, nil, "0, */15 or 0,30"},
		{"hour", 0, 23, nil, "23, */12 or 9-17"},
		{"day of month", 1, 31, nil, "*, 1 or 1,15"},
		{"month", 1, 12, strings.Fields("jan feb mar apr may jun jul aug sep oct nov dec"), "*, 1 or jan,jul"},
		{"day of week", 0, 7, strings.Fields("sun mon tue wed thu fri sat"), "*, 1-5 or mon,thu"},
	}
}

const maxExpression = 512

func splitExpression(expression string) ([]string, error) {
	if len(expression) > maxExpression {
		return nil, &invalidError{fmt.Sprintf("the expression is longer than %d bytes", maxExpression),
			"write five fields, such as 0 23 * * *"}
	}

	words := strings.Fields(expression)
	if len(words) > 0 && strings.HasPrefix(words[0], "@") {
		return expandMacro(words)
	}
	if err := checkFieldCount(words); err != nil {
		return nil, err
	}

	for i, f := range fields() {
		var err error
		if words[i], err = f.expand(words[i]); err != nil {
			return nil, err
		}
	}
	return words, nil
}

func checkFieldCount(words []string) error {
	switch {
	case len(words) > 0 && (strings.HasPrefix(words[0], "TZ=") || strings.HasPrefix(words[0], "CRON_TZ=")):
		_, zone, _ := strings.Cut(words[0], "=")
		return &invalidError{"the expression names a time zone",
			"write the zone on a line of its own, timezone: " + yamlfile.Short(zone)}
	case len(words) == 6:
		return &invalidError{"the expression has six fields", "Elastic Beanstalk ignores the sixth, and others read the " +
			"first as seconds or the last as the year, so it is ambiguous; write the five fields minute, hour, " +
			"day of month, month, day of week, such as " +
			yamlfile.Short(strings.ReplaceAll(strings.Join(words[:5], " "), "?", "*"))}
	case len(words) != 5:
		return &invalidError{"the expression has " + counted(len(words), "field"), "write the five fields minute, hour, " +
			"day of month, month, day of week, such as 0 23 * * *"}
	}
	return nil
}

func expandMacro(words []string) ([]string, error) {
	five := map[string]string{
		"@yearly": "0 0 1 1 *", "@annually": "0 0 1 1 *", "@monthly": "0 0 1 * *", "@weekly": "0 0 * * 0",
		"@daily": "0 0 * * *", "@midnight": "0 0 * * *", "@hourly": "0 * * * *",
	}[strings.ToLower(strings.Join(words, " "))]
	if five == "" {
		return nil, &invalidError{"unknown expression " + yamlfile.Shown(words[0]), "use @yearly, @annually, @monthly, " +
			"@weekly, @daily, @midnight or @hourly, or five fields, such as 0 23 * * *"}
	}
	return strings.Fields(five), nil
}

// expand lists the values of a field. It keeps only a lone *, which leaves the choice of days to the other field.
func (f field) expand(text string) (string, error) {
	if text == "*" {
		return text, nil
	}

	var values []string
	for item := range strings.SplitSeq(text, ",") {
		s, problem := f.parse(item)
		if problem != "" {
			return "", &invalidError{"the " + f.name + " " + yamlfile.Shown(text) + " " + problem,
				fmt.Sprintf("write %d to %d, a range, a list or *, such as %s", f.low, f.top, f.example)}
		}
		for n := s.low; n <= s.high; n += s.every {
			values = append(values, strconv.Itoa(n))
		}
	}
	return strings.Join(values, ","), nil
}

type span struct{ low, high, every int }

func (f field) parse(item string) (s span, problem string) {
	s = span{f.low, f.top, 1}
	base, step, stepped := strings.Cut(item, "/")
	if stepped {
		n, ok := parseNumber(step)
		if !ok || n < 1 || n > f.top {
			return s, fmt.Sprintf("has a step that is not a number from 1 to %d", f.top)
		}
		s.every = n
	}

	if base == "*" {
		return s, ""
	}

	from, to, ranged := strings.Cut(base, "-")
	low, ok := f.value(from)
	switch {
	case base == "":
		return s, "has an empty item"
	case base == "?":
		return s, "has a ?, which stands for *"
	case !ok:
		return s, "is invalid"
	case low < f.low || low > f.top:
		return s, fmt.Sprintf("is not between %d and %d", f.low, f.top)
	case !ranged && stepped:
		return s, fmt.Sprintf("has a step without a range (%s-%d/%s?)", base, f.top, step)
	case !ranged:
		return span{low, low, 1}, ""
	}

	high, ok := f.value(to)
	s.low, s.high = low, high
	switch {
	case !ok:
		return s, "is invalid"
	case high > f.top:
		return s, fmt.Sprintf("is not between %d and %d", f.low, f.top)
	case low > high:
		return s, fmt.Sprintf("has a reversed range (%s?)", f.suggestForwards(s, from, to, step))
	}

	return s, ""
}

func (f field) suggestForwards(s span, from, to, step string) string {
	isDayOfWeek := f.top == 7 // Sunday, like 0
	if isDayOfWeek && s.high == 0 {
		return strings.TrimSuffix(from+"-7/"+step, "/")
	}
	if step == "" {
		return fmt.Sprintf("%s-%d,%d-%s", from, f.top, f.low, to)
	}

	cycle := f.top - f.low + 1
	if isDayOfWeek {
		cycle = 7
	}
	var values []string
	for n := s.low; n <= s.high+cycle; n += s.every {
		values = append(values, strconv.Itoa(f.low+(n-f.low)%cycle))
	}
	return strings.Join(values, ",")
}

func (f field) value(text string) (int, bool) {
	if n, ok := parseNumber(text); ok {
		return n, true
	}
	if i := slices.Index(f.names, strings.ToLower(text)); i >= 0 {
		return f.low + i, true
	}
	return 0, false
}

func parseNumber(text string) (int, bool) {
	if len(text) == 0 || len(text) > 4 || strings.Trim(text, "0123456789") != "" {
		return 0, false
	}
	n, err := strconv.Atoi(text)
	return n, err == nil
}

func counted(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

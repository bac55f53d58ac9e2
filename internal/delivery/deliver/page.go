package deliver

import (
	"bytes"
	"cmp"
	"net/http"
	"strings"
	"unicode"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

// pageText returns the message of an HTML or XML page: the title or, if that only names the status, the first <pre>,
// the first <h1> or the whole text. text does not include the title.
func pageText(page []byte) (line, text string) {
	var all strings.Builder
	parts := map[atom.Atom]*strings.Builder{atom.Title: {}, atom.Pre: {}, atom.H1: {}}
	var part, hidden atom.Atom // elements that enclose the next text
	tokens := html.NewTokenizer(bytes.NewReader(page))
	for kind := tokens.Next(); kind != html.ErrorToken; kind = tokens.Next() {
		if kind == html.TextToken {
			text := string(tokens.Text())
			if hidden == 0 && part != 0 {
				parts[part].WriteString(text)
			}
			if hidden == 0 && part != atom.Title {
				all.WriteString(text)
			}
			continue
		}

		name, _ := tokens.TagName()
		tag := atom.Lookup(name)
		switch {
		case tag == atom.Br && part != 0:
			parts[part].WriteByte('\n')
		case kind == html.EndTagToken && tag == part:
			part = 0
		case kind == html.EndTagToken && tag == hidden:
			hidden = 0
		case kind == html.StartTagToken && (tag == atom.Script || tag == atom.Style):
			hidden = tag
		case kind == html.StartTagToken && part == 0 && parts[tag] != nil && parts[tag].Len() == 0:
			part = tag
		}
		switch {
		case inline[tag]:
		case tag == atom.Td || tag == atom.Th:
			if !strings.HasSuffix(all.String(), "\n") { // otherwise, the space would indent the line
				all.WriteByte(' ')
			}
		default:
			all.WriteByte('\n')
		}
	}

	title := printable(parts[atom.Title].String())
	heading := printable(parts[atom.H1].String())
	candidates := []string{title, firstLine(parts[atom.Pre].String()), heading, printable(all.String())}
	line = cmp.Or(candidates...)
	for _, candidate := range candidates {
		if candidate != "" && !namesStatus(candidate) {
			line = candidate
			break
		}
	}
	return line, indented(all.String())
}

// inline elements do not separate words.
var inline = map[atom.Atom]bool{atom.A: true, atom.Abbr: true, atom.B: true, atom.Code: true, atom.Em: true, atom.Font: true,
	atom.I: true, atom.Kbd: true, atom.Mark: true, atom.Samp: true, atom.Small: true, atom.Span: true, atom.Strong: true,
	atom.Tt: true, atom.U: true, atom.Var: true}

// indented normalizes white space, except at the start of a line, and removes empty lines.
func indented(text string) string {
	var out strings.Builder
	for line := range strings.Lines(strings.ReplaceAll(text, "\u00a0", " ")) {
		if words := strings.Fields(line); len(words) > 0 {
			out.WriteString(line[:len(line)-len(strings.TrimLeft(line, " \t"))])
			out.WriteString(strings.Join(words, " "))
			out.WriteByte('\n')
		}
	}
	return out.String()
}

var statusNames = func() map[string]bool {
	names := map[string]bool{"": true, "error": true, "error page": true, "server error": true, "an error occurred": true,
		"exception": true, "whitelabel error page": true}
	for code := http.StatusBadRequest; code < 600; code++ {
		names[strings.Join(wordsOf(http.StatusText(code)), " ")] = true
	}
	return names
}()

// namesStatus reports whether text says no more than a status code, such as "HTTP Status 404 - Not Found".
func namesStatus(text string) bool {
	words := wordsOf(text)
	return statusNames[strings.Join(words, " ")] || len(words) > 1 && words[0] == "error" &&
		statusNames[strings.Join(words[1:], " ")]
}

func wordsOf(text string) (words []string) {
	notLetter := func(r rune) bool { return !unicode.IsLetter(r) }
	for _, word := range strings.FieldsFunc(strings.ToLower(text), notLetter) {
		if word != "http" && word != "status" && word != "code" {
			words = append(words, word)
		}
	}
	return words
}

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

// pageText returns the most informative text of HTML or XML as line: the title or, if that only names a status, the
// first <pre>, the first <h1> or the whole text. text is the whole text without the title.
func pageText(source []byte) (line, text string) {
	p := page{parts: map[atom.Atom]*strings.Builder{atom.Title: {}, atom.Pre: {}, atom.H1: {}}}
	tokens := html.NewTokenizer(bytes.NewReader(source))
	for kind := tokens.Next(); kind != html.ErrorToken; kind = tokens.Next() {
		if kind == html.TextToken {
			p.addText(string(tokens.Text()))
			continue
		}
		name, _ := tokens.TagName()
		tag := atom.Lookup(name)
		p.addTag(kind, tag)
		p.separateWords(tag)
	}
	return p.message(), indented(p.text.String())
}

type page struct {
	text         strings.Builder
	parts        map[atom.Atom]*strings.Builder
	part, hidden atom.Atom
}

func (p *page) addText(text string) {
	if p.hidden != 0 {
		return
	}
	if p.part != 0 {
		p.parts[p.part].WriteString(text)
	}
	if p.part != atom.Title {
		p.text.WriteString(text)
	}
}

func (p *page) addTag(kind html.TokenType, tag atom.Atom) {
	isNewPart := p.part == 0 && p.parts[tag] != nil && p.parts[tag].Len() == 0
	switch {
	case tag == atom.Br && p.part != 0:
		p.parts[p.part].WriteByte('\n')
	case kind == html.EndTagToken && tag == p.part:
		p.part = 0
	case kind == html.EndTagToken && tag == p.hidden:
		p.hidden = 0
	case kind == html.StartTagToken && (tag == atom.Script || tag == atom.Style):
		p.hidden = tag
	case kind == html.StartTagToken && isNewPart:
		p.part = tag
	}
}

func (p *page) separateWords(tag atom.Atom) {
	switch {
	case inline[tag]:
	case tag == atom.Td || tag == atom.Th:
		if !strings.HasSuffix(p.text.String(), "\n") {
			p.text.WriteByte(' ')
		}
	default:
		p.text.WriteByte('\n')
	}
}

func (p *page) message() string {
	candidates := []string{
		printable(p.parts[atom.Title].String()),
		firstLine(p.parts[atom.Pre].String()),
		printable(p.parts[atom.H1].String()),
		printable(p.text.String()),
	}
	for _, candidate := range candidates {
		if candidate != "" && !namesStatus(candidate) {
			return candidate
		}
	}
	return cmp.Or(candidates...)
}

// inline elements do not separate words. Read-only.
var inline = map[atom.Atom]bool{atom.A: true, atom.Abbr: true, atom.B: true, atom.Code: true, atom.Em: true, atom.Font: true,
	atom.I: true, atom.Kbd: true, atom.Mark: true, atom.Samp: true, atom.Small: true, atom.Span: true, atom.Strong: true,
	atom.Tt: true, atom.U: true, atom.Var: true}

// indented normalizes white space, except at the start of lines, and removes empty lines.
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

// namesStatus reports whether text is only a status, such as "HTTP Status 404 - Not Found".
func namesStatus(text string) bool {
	words := wordsOf(text)
	if len(words) > 1 && words[0] == "error" && statusNames[strings.Join(words[1:], " ")] {
		return true
	}
	return statusNames[strings.Join(words, " ")]
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

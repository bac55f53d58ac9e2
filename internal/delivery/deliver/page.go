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

// pageText is what a page of HTML or XML says, on one line of printable text: its title or, where it has none or one
// that only names the status, its first <pre>, its first <h1>, or all its text.
func pageText(page []byte) string {
	var all strings.Builder
	parts := map[atom.Atom]*strings.Builder{atom.Title: {}, atom.Pre: {}, atom.H1: {}}
	var part, hidden atom.Atom // the elements that the next text belongs to
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
		all.WriteByte(' ')
	}

	title := printable(parts[atom.Title].String())
	heading := printable(parts[atom.H1].String())
	said := []string{title, firstLine(parts[atom.Pre].String()), heading, printable(all.String())}
	for _, text := range said {
		if text != "" && !namesStatus(text) {
			return text
		}
	}
	return cmp.Or(said...)
}

// statusNames are the texts, in small letters, that say no more of a failure than its status does.
var statusNames = func() map[string]bool {
	names := map[string]bool{"": true, "error": true, "error page": true, "server error": true, "an error occurred": true,
		"exception": true, "whitelabel error page": true}
	for code := http.StatusBadRequest; code < 600; code++ {
		names[strings.Join(wordsOf(http.StatusText(code)), " ")] = true
	}
	return names
}()

// namesStatus reports whether a text says no more of a failure than its status: "500", "Internal Server Error",
// "HTTP Status 404 - Not Found".
func namesStatus(text string) bool {
	words := wordsOf(text)
	return statusNames[strings.Join(words, " ")] || len(words) > 1 && words[0] == "error" &&
		statusNames[strings.Join(words[1:], " ")]
}

// wordsOf are the words of a text in small letters, without digits and those that come with a status.
func wordsOf(text string) (words []string) {
	notLetter := func(r rune) bool { return !unicode.IsLetter(r) }
	for _, word := range strings.FieldsFunc(strings.ToLower(text), notLetter) {
		if word != "http" && word != "status" && word != "code" {
			words = append(words, word)
		}
	}
	return words
}

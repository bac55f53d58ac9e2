package sqsapi

import (
	"cmp"
	"errors"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"tendril/queue"
)

const formType = "application/x-www-form-urlencoded"

// serveQuery reads parameters from the URL, a form or both. The path may name a queue.
func (x *exchange) serveQuery() {
	if x.r.Method != http.MethodGet && x.r.Method != http.MethodPost {
		x.w.Header().Set("Allow", "GET, POST")
		x.fail(queue.Errorf(codeMethodNotAllowed, "The Query protocol requires the method GET or POST, not %s.",
			quote(x.r.Method)))
		return
	}
	values, err := x.readForm()
	if err != nil {
		x.fail(err)
		return
	}

	name := actionName(values)
	if name == "" {
		body := []byte("<UnknownOperationException/>\n")
		x.reply(http.StatusNotFound, "text/xml", body)
		return
	}

	act, known := x.h.actions[sqsPrefix+name]
	if !known || act.ofAccount && x.r.URL.Path != "/" {
		x.fail(queue.Errorf(codeUnknownOperation, "The action %s is not valid for this endpoint.", shorten(name)))
		return
	}
	x.action = name
	request := act.request()
	if err := x.decodeQuery(act, values, request); err != nil {
		x.fail(err)
		return
	}
	x.run(act, request)
}

func (x *exchange) decodeQuery(act *action, values []formValue, request any) error {
	if err := act.parameters.decode(values, request); err != nil {
		return err
	}
	if about, ok := request.(interface{ setPath(string) }); ok && x.r.URL.Path != "/" {
		about.setPath(x.r.URL.Path)
	}
	return nil
}

func actionName(values []formValue) (name string) {
	for _, v := range values {
		if v.name == "Action" {
			name = v.value
		}
	}
	return name
}

// readForm returns the parameters of the URL, then of the body. It also authenticates the request, because its
// signature covers the body.
func (x *exchange) readForm() ([]formValue, error) {
	in := x.h.buffer()
	defer x.h.release(in)
	values, err := parseForm(nil, x.r.URL.RawQuery)
	if err != nil {
		return nil, err
	}
	if err := x.readBody(in); err != nil {
		return nil, err
	}

	if x.r.Method == http.MethodPost && isForm(x.r.Header.Get("Content-Type")) {
		if values, err = parseForm(values, in.String()); err != nil {
			return nil, err
		}
	}
	return values, x.authenticate(in.Bytes())
}

func isForm(contentType string) bool {
	if contentType == "" {
		return true
	}
	media, _, err := mime.ParseMediaType(contentType)
	return err == nil && media == formType
}

type formValue struct {
	// name is a path such as SendMessageBatchRequestEntry.1.Id.
	name, value string
	// at is the offset of the next name part.
	at int
}

func (v *formValue) head() string {
	head, _, _ := strings.Cut(v.name[min(v.at, len(v.name)):], ".")
	return head
}

// parseForm copies the values, so that the form's memory can be freed.
func parseForm(values []formValue, form string) ([]formValue, error) {
	values = slices.Grow(values, min(strings.Count(form, "&")+1, maxValues))
	for form != "" {
		var part string
		part, form, _ = strings.Cut(form, "&")
		if part == "" {
			continue
		}
		if len(values) == maxValues {
			return nil, malformed("it holds more than " + strconv.Itoa(maxValues) + " values")
		}

		name, value, _ := strings.Cut(part, "=")
		name, err := unescape(name)
		if err != nil {
			return nil, malformed("a name " + err.Error())
		}
		text, err := unescape(value)
		if err != nil {
			return nil, malformed(shorten(name) + " " + err.Error())
		}

		if text == value {
			text = strings.Clone(text)
		}
		values = append(values, formValue{name: name, value: text})
	}
	return values, nil
}

func unescape(s string) (string, error) {
	if strings.IndexByte(s, '%') >= 0 || strings.IndexByte(s, '+') >= 0 {
		decoded, err := url.QueryUnescape(s)
		if err != nil {
			return "", errors.New("has an invalid escape sequence")
		}
		s = decoded
	}
	if !utf8.ValidString(s) {
		return "", errors.New("is not valid UTF-8")
	}
	return s, nil
}

// sortValues groups the parameters of each list, map or structure, and sorts lists by number. It is stable, and
// positions all values at the start of their names.
func sortValues(values []formValue) {
	for i := range values {
		values[i].at = 0
	}
	slices.SortStableFunc(values, compareNames)
}

func compareNames(a, b formValue) int {
	for a.at < len(a.name) && b.at < len(b.name) {
		x, y := a.head(), b.head()
		if order := compareHeads(x, y); order != 0 {
			return order
		}
		a.at += len(x) + 1
		b.at += len(y) + 1
	}
	return cmp.Compare(len(a.name)-a.at, len(b.name)-b.at)
}

// compareHeads orders numbers by value, before other name parts.
func compareHeads(x, y string) int {
	i, xNumber := listNumber(x)
	j, yNumber := listNumber(y)
	switch {
	case xNumber && yNumber:
		return cmp.Compare(i, j)
	case xNumber:
		return -1
	case yNumber:
		return 1
	}
	return strings.Compare(x, y)
}

// listNumber parses up to nine digits.
func listNumber(s string) (n int, ok bool) {
	if s == "" || len(s) > 9 {
		return 0, false
	}
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return 0, false
		}
		n = 10*n + int(s[i]-'0')
	}
	return n, true
}

func shorten(s string) string {
	const most = 80
	if len(s) > most {
		return strings.TrimRightFunc(s[:most], func(r rune) bool { return r == utf8.RuneError }) + "…"
	}
	return s
}

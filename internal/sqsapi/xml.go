package sqsapi

import (
	"maps"
	"reflect"
	"slices"
	"strconv"
	"unicode/utf8"
)

const (
	xmlType      = "text/xml"
	xmlStart     = `<?xml version="1.0"?>` + "\n<"
	xmlNamespace = ` xmlns="http://queue.amazonaws.com/doc/2012-11-05/">`
)

// appendXML writes a list as a sequence of elements, and a map as elements with a key and a Value.
func (all wireFields) appendXML(dst []byte, structure reflect.Value) []byte {
	for i := range all {
		f := &all[i]
		value := structure.FieldByIndex(f.index)
		if !f.omitted || !isEmpty(value) {
			dst = f.appendXML(dst, value)
		}
	}
	return dst
}

func (f *wireField) appendXML(dst []byte, v reflect.Value) []byte {
	switch value := v.Interface().(type) {
	case string:
		return appendElement(dst, f.query, value)
	case []string:
		for _, text := range value {
			dst = appendElement(dst, f.query, text)
		}
		return dst
	case map[string]string:
		for _, key := range slices.Sorted(maps.Keys(value)) {
			dst = appendKeyValue(dst, f.query, f.key, key, value[key])
		}
		return dst
	case bool:
		return appendElement(dst, f.query, strconv.FormatBool(value))
	case int64:
		return appendElement(dst, f.query, strconv.FormatInt(value, 10))
	}

	for i := range v.Len() {
		dst = appendTag(dst, "<", f.query)
		dst = f.of.appendXML(dst, v.Index(i))
		dst = appendTag(dst, "</", f.query)
	}
	return dst
}

func appendTag(dst []byte, start, name string) []byte {
	return append(append(append(dst, start...), name...), '>')
}

func appendElement(dst []byte, name, text string) []byte {
	dst = appendTag(dst, "<", name)
	dst = appendXMLText(dst, text)
	return appendTag(dst, "</", name)
}

func appendKeyValue(dst []byte, name, keyName, key, value string) []byte {
	dst = appendTag(dst, "<", name)
	dst = appendElement(dst, keyName, key)
	dst = appendElement(dst, "Value", value)
	return appendTag(dst, "</", name)
}

// appendXMLText escapes text. Characters that XML cannot represent become U+FFFD. Parsers convert carriage returns to
// line feeds, so they are escaped.
func appendXMLText(dst []byte, s string) []byte {
	done := 0
	for i := 0; i < len(s); {
		if xmlPlain[s[i]] {
			i++
			continue
		}
		escape, size := xmlEscape(s[i:])
		if escape != "" {
			dst = append(append(dst, s[done:i]...), escape...)
			done = i + size
		}
		i += size
	}
	return append(dst, s[done:]...)
}

// xmlPlain has the bytes that need no escaping. Read-only.
var xmlPlain = func() (plain [256]bool) {
	for c := range utf8.RuneSelf {
		plain[c] = c >= ' ' || c == '\t' || c == '\n'
	}
	for _, c := range `&<>"` {
		plain[c] = false
	}
	return plain
}()

// xmlEscape returns the escape of s's first character, or "", and its size in bytes.
func xmlEscape(s string) (escape string, size int) {
	switch s[0] {
	case '&':
		return "&amp;", 1
	case '<':
		return "&lt;", 1
	case '>':
		return "&gt;", 1
	case '"':
		return "&quot;", 1
	case '\r':
		return "&#xD;", 1
	}

	r, size := utf8.DecodeRuneInString(s)
	if r < ' ' || r == utf8.RuneError || r == '\uFFFE' || r == '\uFFFF' {
		return "\uFFFD", size
	}
	return "", size
}

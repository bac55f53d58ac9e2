package filter

import (
	"bytes"
	"encoding/json"
	"strings"
	"unicode/utf8"
)

// What is read here is valid JSON: the reader only has to find where a value ends.

// matchesJSON reports whether a value matches an object: the value itself, or one of the objects in an array. What is
// neither has no fields.
func (o *object) matchesJSON(value []byte) bool {
	switch {
	case len(value) > 0 && value[0] == '{':
		return o.match(func(f *field) bool { return f.matchesJSON(lookUp(value, f.name)) })
	case len(value) > 0 && value[0] == '[':
		hasObject, matched := false, false
		elements(value, func(element []byte) {
			if element[0] == '{' || element[0] == '[' {
				hasObject = true
				matched = matched || o.matchesJSON(element)
			}
		})
		if hasObject {
			return matched
		}
	}
	return o.match((*field).matchesAbsence)
}

// matchesJSON reports whether the field matches its value, nil for none.
func (f *field) matchesJSON(value []byte) bool {
	if f.nested != nil {
		return f.nested.matchesJSON(value)
	}
	found, matched := f.matchesLeaves(value)
	return matched || !found && f.absent
}

// matchesLeaves tells whether a value has leaves: itself, or those of an array; and whether one of them matches.
func (f *field) matchesLeaves(value []byte) (found, matched bool) {
	switch {
	case len(value) == 0 || value[0] == '{':
		return false, false
	case value[0] != '[':
		return true, f.matchesLeaf(leafOf(value))
	}
	elements(value, func(element []byte) {
		if !matched {
			var one bool
			one, matched = f.matchesLeaves(element)
			found = found || one
		}
	})
	return found, matched
}

func leafOf(value []byte) leaf {
	switch c := value[0]; c {
	case '"':
		return leaf{kind: isString, text: unquote(value)}
	case 't', 'f':
		return leaf{kind: isBool, text: string(value)}
	case 'n':
		return leaf{kind: isNull}
	}
	return leaf{kind: isNumber, text: string(value)}
}

// unquote returns the characters of a string.
func unquote(value []byte) string {
	if isPlain(value) {
		return string(value[1 : len(value)-1])
	}
	var text string
	if err := json.Unmarshal(value, &text); err != nil {
		return ""
	}
	return text
}

// lookUp returns the value of a name in an object, nil for none. Of two of one name the last counts, as it does for
// most readers of JSON.
func lookUp(object []byte, name string) (found []byte) {
	for i := skipBlanks(object, 1); object[i] != '}'; {
		end := valueEnd(object, i)
		key := object[i:end]
		i = skipBlanks(object, skipBlanks(object, end)+1) // behind the colon
		end = valueEnd(object, i)
		if isKey(key, name) {
			found = object[i:end]
		}
		if i = skipBlanks(object, end); object[i] == ',' {
			i = skipBlanks(object, i+1)
		}
	}
	return found
}

func isKey(key []byte, name string) bool {
	if isPlain(key) {
		return string(key[1:len(key)-1]) == name
	}
	return unquote(key) == name
}

// isPlain reports whether the characters of a string are the bytes between its quotes.
func isPlain(quoted []byte) bool { return bytes.IndexByte(quoted, '\\') < 0 && utf8.Valid(quoted) }

// elements calls do for each element of an array.
func elements(array []byte, do func(element []byte)) {
	for i := skipBlanks(array, 1); array[i] != ']'; {
		end := valueEnd(array, i)
		do(array[i:end])
		if i = skipBlanks(array, end); array[i] == ',' {
			i = skipBlanks(array, i+1)
		}
	}
}

func skipBlanks(text []byte, i int) int {
	for text[i] == ' ' || text[i] == '\t' || text[i] == '\r' || text[i] == '\n' {
		i++
	}
	return i
}

// valueEnd is the index behind the value that begins at i, in an object or array.
func valueEnd(text []byte, i int) int {
	switch text[i] {
	case '"':
		return stringEnd(text, i)
	case '{', '[':
		depth := 0
		for ; ; i++ {
			switch text[i] {
			case '"':
				i = stringEnd(text, i) - 1
			case '{', '[':
				depth++
			case '}', ']':
				if depth--; depth == 0 {
					return i + 1
				}
			}
		}
	}
	for !strings.ContainsRune(",]} \t\r\n", rune(text[i])) {
		i++
	}
	return i
}

func stringEnd(text []byte, i int) int {
	for i++; text[i] != '"'; i++ {
		if text[i] == '\\' {
			i++
		}
	}
	return i + 1
}

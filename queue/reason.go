package queue

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"
)

const maxFailureGroup = 200 // in bytes

// FailureGroup returns the same text for similar failures: the HTTP status (300 or higher) or the [Result]'s reason,
// then the error message or first line of the response, with # for numbers and * for IDs.
func FailureGroup(status int, reason, answer string) string {
	message := withoutIDs(headline(answer))
	if !strings.HasPrefix(reason, "no response within ") { // the time is a setting
		reason = withoutIDs(reason)
	}
	text := reason + " " + message
	if status >= 300 {
		text = fmt.Sprintf("HTTP %d %s", status, message)
	}
	text = strings.ToValidUTF8(strings.Join(strings.FieldsFunc(text, notInReason), " "), string(utf8.RuneError))
	return strings.ToValidUTF8(text[:min(len(text), maxFailureGroup)], "")
}

func notInReason(r rune) bool { return unicode.IsSpace(r) || !unicode.IsPrint(r) }

func headline(answer string) string {
	var object map[string]any
	if json.Unmarshal([]byte(answer), &object) == nil {
		if message := errorText(object); message != "" {
			return message
		}
	}
	line, _, _ := strings.Cut(strings.TrimSpace(answer), "\n")
	return line
}

func errorText(object map[string]any) string {
	for _, name := range []string{"message", "error", "detail", "title", "errorMessage", "reason"} {
		switch value := object[name].(type) {
		case string:
			if value != "" {
				return value
			}
		case map[string]any:
			if inner := errorText(value); inner != "" {
				return inner
			}
		}
	}
	return ""
}

func withoutIDs(text string) string { return replaceParts(text, notInWord, wordWithoutIDs) }

func replaceParts(text string, separates func(rune) bool, replace func(string) string) string {
	var out strings.Builder
	for text != "" {
		end := strings.IndexFunc(text, separates)
		if end < 0 {
			end = len(text)
		}
		if end > 0 {
			out.WriteString(replace(text[:end]))
		} else {
			_, end = utf8.DecodeRuneInString(text)
			out.WriteString(text[:end])
		}
		text = text[end:]
	}
	return out.String()
}

func notInWord(r rune) bool {
	return !separatesParts(r) && !unicode.IsLetter(r) && !unicode.IsDigit(r)
}

func separatesParts(r rune) bool { return r == '-' || r == '_' }

var (
	aUUID   = regexp.MustCompile(`^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$`)
	aNumber = regexp.MustCompile(`\d+`)
)

// mixedID is the minimum length of letters mixed with digits to count as an ID, as in "order_8f3a21".
const mixedID = 6

func wordWithoutIDs(word string) string {
	if !strings.ContainsFunc(word, unicode.IsDigit) {
		return word
	}
	if aUUID.MatchString(word) {
		return "*"
	}
	return replaceParts(word, separatesParts, partWithoutIDs)
}

func partWithoutIDs(part string) string {
	hasDigits := strings.ContainsFunc(part, unicode.IsDigit)
	hasLetters := strings.ContainsFunc(part, unicode.IsLetter)
	if len(part) >= mixedID && hasDigits && hasLetters {
		return "*"
	}
	return aNumber.ReplaceAllLiteralString(part, "#")
}

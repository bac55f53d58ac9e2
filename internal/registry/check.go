package registry

import (
	"strings"
	"unicode/utf8"

	"tendril/queue"
)

const (
	maxName = 512      // bytes
	maxText = 16 << 10 // bytes
)

func errInvalid(format string, args ...any) error {
	return queue.Errorf(queue.CodeInvalidParameterValue, format, args...)
}

func checkName(what, name string) error {
	if name == "" || len(name) > maxName || !validText(name) {
		return errInvalid("Invalid name of a %s, %q: use 1 to %d bytes of text without control characters.",
			what, clip(name), maxName)
	}
	return nil
}

// checkText rejects text that some stores would not return unchanged.
func checkText(what, text string) error {
	if len(text) > maxText || !validText(text) {
		return errInvalid("The %s is invalid: use at most %d bytes of text without control characters.", what, maxText)
	}
	return nil
}

// checkLease accepts term 0, the term before the first holder.
func checkLease(name string, l queue.Lease) error {
	if err := checkName("lease", name); err != nil {
		return err
	}
	if l.Version == "" {
		return errInvalid("Lease %s needs a version; give each write a new one.", name)
	}
	if l.Term < 0 || l.Duration < 0 {
		return errInvalid("Lease %s has a negative term or duration.", name)
	}
	for _, field := range []struct{ name, text string }{{"version", l.Version}, {"owner", l.Owner}, {"data", l.Data}} {
		if err := checkText(field.name+" of lease "+name, field.text); err != nil {
			return err
		}
	}
	return nil
}

func validText(s string) bool {
	return utf8.ValidString(s) && !strings.ContainsFunc(s, func(c rune) bool {
		return c < ' ' && c != '\t' && c != '\n' && c != '\r' || c == 0xFFFE || c == 0xFFFF
	})
}

func clip(s string) string {
	if len(s) <= maxName {
		return s
	}
	return s[:maxName] + "..."
}

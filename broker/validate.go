package broker

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"tendril/queue"
)

const (
	maxAttributes    = 10
	maxAttributeName = 256
	maxAttributeType = 256
	maxIDLength      = 128
	maxDelay         = 900 * time.Second
	maxWait          = 20 * time.Second
)

func (s *settings) checkCall(msgs []queue.Outgoing) error {
	if err := queue.CheckEntries(len(msgs), "SendMessageBatchRequestEntry"); err != nil {
		return err
	}
	total := 0
	for i := range msgs {
		total += msgs[i].Size()
	}
	if err := queue.CheckBatchSize(total); err != nil && len(msgs) > 1 {
		return err
	}

	if s.fifo {
		return s.checkIDs(msgs)
	}
	return nil
}

func (s *settings) checkIDs(msgs []queue.Outgoing) error {
	for i := range msgs {
		if msgs[i].GroupID == "" {
			return queue.Errorf(queue.CodeMissingRequiredParameter,
				"The request must contain the parameter MessageGroupId.")
		}
		if msgs[i].DedupID == "" && !s.contentDedup {
			return errInvalid(
				"The queue should either have ContentBasedDeduplication enabled or MessageDeduplicationId provided " +
					"explicitly")
		}
	}
	return nil
}

func (s *settings) checkOutgoing(m *queue.Outgoing) error {
	if m.Body == "" {
		return queue.Errorf(queue.CodeMissingRequiredParameter, "The request must contain the parameter MessageBody.")
	}
	if m.Size() > s.maxSize {
		return errInvalid("One or more parameters are invalid. Reason: Message must be shorter than %d bytes.",
			s.maxSize)
	}
	if !validText(m.Body) {
		return errCharacters
	}
	if err := checkAttributes(m.Attributes); err != nil {
		return err
	}

	switch {
	case !validText(m.TraceHeader):
		return errCharacters
	case m.Delay != nil && (*m.Delay < 0 || *m.Delay > maxDelay):
		return errParameter("DelaySeconds", secondsText(*m.Delay), "DelaySeconds must be >= 0 and <= 900.")
	case m.Delay != nil && s.fifo && *m.Delay != 0:
		return errParameter("DelaySeconds", secondsText(*m.Delay), notForThisType)
	case !s.fifo && m.DedupID != "":
		return errParameter("MessageDeduplicationId", m.DedupID, notForThisType)
	case m.GroupID != "" && !validID(m.GroupID):
		return errParameter("MessageGroupId", m.GroupID, "MessageGroupId"+idRule)
	case m.DedupID != "" && !validID(m.DedupID):
		return errParameter("MessageDeduplicationId", m.DedupID, "MessageDeduplicationId"+idRule)
	}
	return nil
}

const (
	notForThisType = "The request include parameter that is not valid for this queue type."
	idRule         = " can only include alphanumeric and punctuation characters. 1 to 128 in length."
)

func errInvalid(format string, args ...any) error {
	return queue.Errorf(queue.CodeInvalidParameterValue, format, args...)
}

func errParameter(name, value, reason string) error {
	return errInvalid("Value %s for parameter %s is invalid. Reason: %s", clip(value), name, reason)
}

func secondsText(d time.Duration) string { return fmt.Sprint(d.Seconds()) }

func validID(s string) bool {
	return s != "" && len(s) <= maxIDLength && !strings.ContainsFunc(s, func(c rune) bool { return c <= ' ' || c > '~' })
}

var errCharacters = queue.Errorf(queue.CodeInvalidMessageContents,
	"Invalid characters found. Valid unicode characters are #x9 | #xA | #xD | #x20 to #xD7FF | #xE000 to #xFFFD | "+
		"#x10000 to #x10FFFF")

func validText(s string) bool {
	plain := true // only ASCII so far
	for i := 0; i < len(s); i++ {
		for i+8 <= len(s) && printable8(s[i:i+8]) {
			i += 8
		}
		if i == len(s) {
			break
		}

		switch c := s[i]; {
		case c >= 0x80:
			plain = false
		case c < ' ' && c != '\t' && c != '\n' && c != '\r':
			return false
		}
	}
	return plain || utf8.ValidString(s) && !strings.ContainsAny(s, "\ufffe\uffff")
}

func printable8(s string) bool {
	const high = 0x8080808080808080
	word := binary.LittleEndian.Uint64([]byte(s))
	return (word|(word-0x2020202020202020))&high == 0
}

func checkAttributes(attributes []queue.Attribute) error {
	if len(attributes) > maxAttributes {
		return errInvalid("Number of message attributes [%d] exceeds the allowed maximum [%d].", len(attributes),
			maxAttributes)
	}

	for i, a := range attributes {
		for _, before := range attributes[:i] {
			if before.Name == a.Name {
				return errInvalid("Message (user) attribute name '%s' already exists.", clip(a.Name))
			}
		}
		if err := cmp.Or(checkAttributeName(a.Name), checkAttributeType(a), checkAttributeValue(a)); err != nil {
			return err
		}
	}
	return nil
}

func checkAttributeName(name string) error {
	if name == "" {
		return errInvalid("The request must contain non-empty message attribute names.")
	}
	if len(name) > maxAttributeName {
		return errInvalid("Message (user) attribute name must be shorter than %d Bytes", maxAttributeName)
	}
	if lower := strings.ToLower(name); strings.HasPrefix(lower, "aws.") || strings.HasPrefix(lower, "amazon.") {
		return errInvalid("You can't use message attribute names beginning with 'AWS.' or 'Amazon.'. These strings are " +
			"reserved for internal use.")
	}
	// SQS accepts non-ASCII letters, though that is undocumented.
	if i := strings.IndexFunc(name, func(c rune) bool {
		return notInName(c) && c != '.' && (c < utf8.RuneSelf || !unicode.IsLetter(c))
	}); i >= 0 {
		c, _ := utf8.DecodeRuneInString(name[i:])
		return errInvalid("Invalid non-alphanumeric character '#x%X' was found in the message attribute name. Can only "+
			"include alphanumeric characters, hyphens, underscores, or dots.", c)
	}

	switch {
	case name[0] == '.':
		return errInvalid("Message (user) attribute name must not start with character '.'.")
	case name[len(name)-1] == '.':
		return errInvalid("Message (user) attribute name must not end with character '.'.")
	case strings.Contains(name, ".."):
		return errInvalid("Message (user) attribute name must not have successive '.' characters.")
	}
	return nil
}

func notInName(c rune) bool {
	return !('a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == '-' || c == '_')
}

func baseType(a queue.Attribute) string {
	base, _, _ := strings.Cut(a.Type, ".")
	return base
}

func checkAttributeType(a queue.Attribute) error {
	if a.Type == "" {
		return errInvalid("The message attribute '%s' must contain a non-empty message attribute type.", a.Name)
	}

	base := baseType(a)
	validBase := base == "String" || base == "Number" || base == "Binary"
	if !validBase || len(a.Type) > maxAttributeType || !validText(a.Type) {
		return errInvalid(
			"The type of message (user) attribute '%s' is invalid. You must use only the following supported type "+
				"prefixes: Binary, Number, String.", a.Name)
	}
	return nil
}

func checkAttributeValue(a queue.Attribute) error {
	base := baseType(a)
	switch {
	case a.Value == "":
		return errInvalid("Message (user) attribute '%s' must contain a non-empty value of type '%s'.", a.Name, base)
	case base != "Binary" && !validText(a.Value):
		// SQS returns InvalidParameterValue here, not InvalidMessageContents.
		return errInvalid("%s", errCharacters.Message)
	case base == "Number" && !validNumber(a.Value):
		return errInvalid("Can't cast the value of message (user) attribute '%s' to a number.", a.Name)
	}
	return nil
}

var numberForm = regexp.MustCompile(`^[+-]?([0-9]*)\.?([0-9]*)(?:[eE]([+-]?[0-9]{1,4}))?$`)

// Amazon SQS Developer Guide, "Message metadata": significant digits, and powers of ten.
const (
	maxDigits     = 38
	smallestPower = -128
	largestPower  = 126
)

// validNumber does not count leading and trailing zeros as digits.
func validNumber(s string) bool {
	if _, err := strconv.Atoi(s); err == nil { // most numbers are integers
		return true
	}
	m := numberForm.FindStringSubmatch(s)
	if m == nil || m[1]+m[2] == "" {
		return false
	}
	digits := strings.TrimLeft(m[1]+m[2], "0")
	if digits == "" {
		return true
	}

	exponent, _ := strconv.Atoi(m[3])
	power := exponent + len(digits) - len(m[2]) - 1
	digits = strings.TrimRight(digits, "0")
	if power == largestPower {
		return digits == "1"
	}
	return len(digits) <= maxDigits && power >= smallestPower && power < largestPower
}

package send

import (
	"bufio"
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"math/big"
	"strings"
	"time"
	"unicode/utf8"

	"tendril/api"
	"tendril/internal/cli/base"
	"tendril/queue"
)

// MaxLine is the largest message with every byte escaped, plus attributes.
const MaxLine = 8 << 20

type line struct {
	number int
	msg    queue.Outgoing
}

func messagesIn(r io.Reader, raw bool) iter.Seq2[line, error] {
	return ReadLines(r, func(number int, text []byte) (line, error) {
		if raw {
			return line{number, queue.Outgoing{Body: string(text)}}, nil
		}
		msg, err := parseLine(text)
		return line{number, msg}, err
	})
}

// ReadLines parses lines, except empty ones. An error ends the iteration and contains the line number.
func ReadLines[T any](r io.Reader, parse func(number int, text []byte) (T, error)) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		var none T
		lines := bufio.NewScanner(r)
		lines.Buffer(make([]byte, 0, 64<<10), MaxLine)
		number := 0
		for lines.Scan() {
			number++
			text := lines.Bytes()
			if len(bytes.TrimSpace(text)) == 0 {
				continue
			}
			parsed, err := parse(number, text)
			if err != nil {
				yield(none, base.Fail(base.ExitUsage, fmt.Errorf("line %d: %w", number, err), base.HintsOf(err)...))
				return
			}
			if !yield(parsed, nil) {
				return
			}
		}

		if err := lines.Err(); errors.Is(err, bufio.ErrTooLong) {
			yield(none,
				base.Usagef("line %d is longer than %s", number+1, base.Size(MaxLine)).Hint("SQS accepts messages up to 1 MiB"))
		} else if err != nil {
			yield(none, fmt.Errorf("reading messages: %w", err))
		}
	}
}

// parseLine takes an object with the key "body" as a message, and any other JSON value as a body. It ignores exported
// properties that cannot be sent; unknown keys are errors.
func parseLine(text []byte) (queue.Outgoing, error) {
	message, when, err := ParseMessage(text)
	if err != nil {
		return queue.Outgoing{}, err
	}
	out := api.Outgoing{
		Body: message.Body, Attributes: message.Attributes, DelaySeconds: when.delay,
		GroupID: message.GroupID, DedupID: message.DedupID, TraceHeader: message.TraceHeader, NotBefore: when.notBefore,
	}
	sent := out.ToQueue()
	sent.Attributes, _ = queue.CutReason(sent.Attributes)
	return sent, nil
}

type delayed struct {
	delay     *int // seconds
	notBefore time.Time
}

// ParseMessage parses a line of 'tendril send' or 'tendril dead export'. It also returns exported properties that
// cannot be sent.
func ParseMessage(text []byte) (m api.Message, when delayed, err error) {
	switch {
	case !utf8.Valid(text):
		return m, when, errors.New("invalid UTF-8")
	case !json.Valid(text):
		return m, when, base.Usagef("invalid JSON").Hint("add --raw to send every line as is")
	}

	var keys map[string]json.RawMessage
	if json.Unmarshal(text, &keys) != nil || keys["body"] == nil {
		return api.Message{Body: string(text)}, delayed{}, nil
	}

	var message struct {
		api.Message
		Body         json.RawMessage `json:"body"`
		DelaySeconds *int            `json:"delay_seconds"`
		NotBefore    time.Time       `json:"not_before"`
		// Receipt, in the output of 'tendril receive', is ignored.
		Receipt string `json:"receipt_handle"`
	}
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&message); err != nil {
		return m, when,
			base.Usagef("the object has a body, so it is read as a message, but %s",
				strings.TrimPrefix(err.Error(), "json: ")).
				Hint("use the keys body, attributes, group_id, dedup_id, trace_header, delay_seconds and not_before, " +
					"or add --raw to send every line as is")
	}

	m = message.Message
	m.Body = string(message.Body)
	if message.Body[0] == '"' {
		err = json.Unmarshal(message.Body, &m.Body)
	}

	return m, delayed{message.DelaySeconds, message.NotBefore}, err
}

func parseAttributes(texts []string) ([]queue.Attribute, error) {
	var attributes []queue.Attribute
	seen := map[string]bool{}
	for _, text := range texts {
		a, err := parseAttribute(text)
		if err != nil {
			return nil, err
		}
		if seen[a.Name] {
			return nil, base.Usagef("duplicate --attr %s", a.Name).Hint("give each attribute one value")
		}
		seen[a.Name] = true
		attributes = append(attributes, a)
	}
	return attributes, nil
}

func parseAttribute(text string) (queue.Attribute, error) {
	const forms = "use name=text, name:Number=3, name:String.label=text or name:Binary=AAE="
	refuse := func(format string, args ...any) (queue.Attribute, error) {
		return queue.Attribute{}, base.Usagef("invalid --attr %s: "+format, append([]any{text}, args...)...).Hint(forms)
	}
	name, value, found := strings.Cut(text, "=")
	name, kind, typed := strings.Cut(name, ":")
	if !typed {
		kind = "String"
	}

	a := queue.Attribute{Name: name, Type: kind, Value: value}
	switch dataType, _, _ := strings.Cut(kind, "."); {
	case !found:
		return refuse("no = between name and value")
	case name == "":
		return refuse("no name")
	case value == "":
		return refuse("empty value, which SQS rejects")
	case dataType == "Number":
		if !isDecimal(value) {
			return refuse("%q is not a number", value)
		}
	case dataType == "Binary":
		data, err := base64.StdEncoding.DecodeString(value)
		if err != nil {
			return refuse("invalid base64 value")
		}
		a.Value = string(data)
	case dataType != "String":
		return refuse("unknown type %q: use String, Number or Binary", kind)
	}

	return a, nil
}

// isDecimal rejects forms such as 0x10 and Inf, which SetString accepts.
func isDecimal(text string) bool {
	_, ok := new(big.Float).SetString(text)
	return ok && !strings.ContainsAny(text, "_xXpPiI")
}

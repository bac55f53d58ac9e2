package broker

import (
	"errors"
	"strings"
	"testing"
	"time"

	"tendril/queue"
)

func attrs(list ...string) (out []queue.Attribute) {
	for i := 0; i+2 < len(list); i += 3 {
		out = append(out, queue.Attribute{Name: list[i], Type: list[i+1], Value: list[i+2]})
	}
	return out
}

func TestCheckOutgoing(t *testing.T) {
	t.Parallel()
	eleven := strings.Repeat("x ", 11)
	var many []queue.Attribute
	for i := range strings.Fields(eleven) {
		many = append(many, queue.Attribute{Name: string(rune('a' + i)), Type: "String", Value: "x"})
	}
	limit := strings.Repeat("x", 1024)
	for _, c := range []struct {
		name string
		m    queue.Outgoing
		want string // error code and start of the message; "" if accepted
	}{
		{"plain", queue.Outgoing{Body: "x"}, ""},
		{"no body", queue.Outgoing{},
			queue.CodeMissingRequiredParameter + ": The request must contain the parameter MessageBody."},
		{"largest", queue.Outgoing{Body: limit}, ""},
		{"too large", queue.Outgoing{Body: limit + "x"},
			queue.CodeInvalidParameterValue +
				": One or more parameters are invalid. Reason: Message must be shorter than 1024 bytes."},
		{"attributes count", queue.Outgoing{Body: limit[:1020], Attributes: attrs("a", "String", "x")},
			queue.CodeInvalidParameterValue + ": One or more"},
		{"white space", queue.Outgoing{Body: "\t\n\r ü € 😀 \ud7ff\ue000\ufffd"}, ""},
		{"control", queue.Outgoing{Body: "a\x01"},
			queue.CodeInvalidMessageContents + ": Invalid characters found. Valid unicode characters are #x9 | #xA"},
		{"NUL", queue.Outgoing{Body: "\x00"}, queue.CodeInvalidMessageContents},
		{"DEL is fine", queue.Outgoing{Body: "\x7f"}, ""},
		{"FFFE", queue.Outgoing{Body: "\ufffe"}, queue.CodeInvalidMessageContents},
		{"FFFF", queue.Outgoing{Body: "\uffff"}, queue.CodeInvalidMessageContents},
		{"surrogate", queue.Outgoing{Body: "\xed\xa0\x80"}, queue.CodeInvalidMessageContents},
		{"no UTF-8", queue.Outgoing{Body: "\xff"}, queue.CodeInvalidMessageContents},
		{"trace", queue.Outgoing{Body: "x", TraceHeader: "\x01"}, queue.CodeInvalidMessageContents},
		{"ten attributes", queue.Outgoing{Body: "x", Attributes: many[:10]}, ""},
		{"eleven", queue.Outgoing{Body: "x", Attributes: many},
			queue.CodeInvalidParameterValue + ": Number of message attributes [11] exceeds the allowed maximum [10]."},
		{"twice", queue.Outgoing{Body: "x", Attributes: attrs("a", "String", "x", "a", "String", "y")},
			queue.CodeInvalidParameterValue},
		{"no name", queue.Outgoing{Body: "x", Attributes: attrs("", "String", "x")}, queue.CodeInvalidParameterValue},
		{"long name", queue.Outgoing{Body: "x", Attributes: attrs(strings.Repeat("n", 257), "String", "x")},
			queue.CodeInvalidParameterValue},
		{"longest name", queue.Outgoing{Body: "x", Attributes: attrs(strings.Repeat("n", 256), "String", "x")}, ""},
		{"AWS", queue.Outgoing{Body: "x", Attributes: attrs("aWs.x", "String", "x")},
			queue.CodeInvalidParameterValue + ": You can't use message attribute names beginning with 'AWS.'"},
		{"Amazon", queue.Outgoing{Body: "x", Attributes: attrs("AMAZON.x", "String", "x")}, queue.CodeInvalidParameterValue},
		{"awsome", queue.Outgoing{Body: "x", Attributes: attrs("awsome", "String", "x")}, ""},
		{"dots", queue.Outgoing{Body: "x", Attributes: attrs("a.b-c_d", "String", "x")}, ""},
		{"leading dot", queue.Outgoing{Body: "x", Attributes: attrs(".a", "String", "x")}, queue.CodeInvalidParameterValue},
		{"trailing dot", queue.Outgoing{Body: "x", Attributes: attrs("a.", "String", "x")}, queue.CodeInvalidParameterValue},
		{"two dots", queue.Outgoing{Body: "x", Attributes: attrs("a..b", "String", "x")}, queue.CodeInvalidParameterValue},
		{"blank", queue.Outgoing{Body: "x", Attributes: attrs("a b", "String", "x")},
			queue.CodeInvalidParameterValue + ": Invalid non-alphanumeric character '#x20'"},
		{"no type", queue.Outgoing{Body: "x", Attributes: attrs("a", "", "x")},
			queue.CodeInvalidParameterValue + ": The message attribute 'a' must contain a non-empty message attribute type."},
		{"wrong type", queue.Outgoing{Body: "x", Attributes: attrs("a", "Text", "x")},
			queue.CodeInvalidParameterValue + ": The type of message (user) attribute 'a' is invalid."},
		{"type prefix", queue.Outgoing{Body: "x", Attributes: attrs("a", "Stringy", "x")}, queue.CodeInvalidParameterValue},
		{"custom type", queue.Outgoing{Body: "x",
			Attributes: attrs("a", "Number.int", "-1.5e+3", "b", "Binary.png", "\x00\xff")}, ""},
		{"no value", queue.Outgoing{Body: "x", Attributes: attrs("a", "String", "")},
			queue.CodeInvalidParameterValue + ": Message (user) attribute 'a' must contain a non-empty value of type 'String'."},
		{"no number", queue.Outgoing{Body: "x", Attributes: attrs("a", "Number", "one")},
			queue.CodeInvalidParameterValue + ": Can't cast the value of message (user) attribute 'a' to a number."},
		{"value characters", queue.Outgoing{Body: "x", Attributes: attrs("a", "String", "\x02")},
			queue.CodeInvalidParameterValue + ": Invalid characters found."},
		{"letters outside ASCII", queue.Outgoing{Body: "x", Attributes: attrs("attr.1øßä", "String", "x")}, ""},
		{"section sign", queue.Outgoing{Body: "x", Attributes: attrs("a§", "String", "x")},
			queue.CodeInvalidParameterValue + ": Invalid non-alphanumeric character '#xA7'"},
		{"exclamation mark", queue.Outgoing{Body: "x", Attributes: attrs("a!", "String", "x")},
			queue.CodeInvalidParameterValue},
		{"quote", queue.Outgoing{Body: "x", Attributes: attrs(`a"`, "String", "x")}, queue.CodeInvalidParameterValue},
		{"bracket", queue.Outgoing{Body: "x", Attributes: attrs("a(", "String", "x")}, queue.CodeInvalidParameterValue},
		{"question mark", queue.Outgoing{Body: "x", Attributes: attrs("a?", "String", "x")}, queue.CodeInvalidParameterValue},
		{"delay", queue.Outgoing{Body: "x", Delay: new(900 * time.Second)}, ""},
		{"long delay", queue.Outgoing{Body: "x", Delay: new(901 * time.Second)},
			queue.CodeInvalidParameterValue + ": Value 901 for parameter DelaySeconds"},
		{"group", queue.Outgoing{Body: "x", GroupID: strings.Repeat("~", 128)}, ""},
		{"long group", queue.Outgoing{Body: "x", GroupID: strings.Repeat("g", 129)}, queue.CodeInvalidParameterValue},
		{"blank in group", queue.Outgoing{Body: "x", GroupID: "a b"}, queue.CodeInvalidParameterValue},
	} {
		set, err := parseSettings(false, map[string]string{"MaximumMessageSize": "1024"})
		if err != nil {
			t.Fatal(err)
		}
		got := ""
		if err := set.checkOutgoing(&c.m); err != nil {
			got = describe(err)
		}
		if (got == "") != (c.want == "") || !strings.HasPrefix(got, c.want) {
			t.Errorf("%s: got %q, want %q", c.name, got, c.want)
		}
	}
}

func TestValidText(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		text string
		ok   bool
	}{
		{"", true}, {"\t\n\r ~\x7f", true}, {"ü", true}, {"\u0085", true}, {"\x0b", false}, {"\x1f", false},
		{"\ufffd", true}, {"\uffff", false}, {"\xc3", false},
	} {
		for before := range 20 {
			for _, after := range []int{0, 1, 9} {
				text := strings.Repeat("a", before) + c.text + strings.Repeat("b", after)
				if validText(text) != c.ok {
					t.Errorf("%q: %t", text, !c.ok)
				}
			}
		}
	}
}

func TestValidNumber(t *testing.T) {
	t.Parallel()
	for _, good := range []string{"0", "-1", "+1", "1.5", ".5", "5.", "1e9", "1E-9", "-1.5e+3",
		"123456789012345678901234567890"} {
		if !validNumber(good) {
			t.Errorf("%q is refused", good)
		}
	}
	for _, bad := range []string{"", "x", "-", "+-1", "1e", "e1", ".", "1.2.3", "0x10", "1 2", "NaN", "Infinity", "1e+"} {
		if validNumber(bad) {
			t.Errorf("%q is taken", bad)
		}
	}
}

func FuzzCheckOutgoing(f *testing.F) {
	f.Add("body", "name", "String", "value")
	f.Add("\xff", "a.", "Number", "1e")
	set, _ := parseSettings(false, nil)
	f.Fuzz(func(t *testing.T, body, name, kind, value string) {
		m := queue.Outgoing{Body: body, Attributes: attrs(name, kind, value)}
		if err := set.checkOutgoing(&m); err != nil {
			var e *queue.Error
			if !errors.As(err, &e) || e.Message == "" {
				t.Errorf("%v is not a refusal", err)
			}
		}
	})
}

func TestBatches(t *testing.T) {
	t.Parallel()
	b := openTest(t, nil)
	q := create(t, b, "work", map[string]string{"MaximumMessageSize": "1024"})
	half := strings.Repeat("x", queue.MaxMessageSize/2)
	for _, c := range []struct {
		name string
		msgs []queue.Outgoing
		want string
	}{
		{"none", nil, queue.CodeEmptyBatchRequest + ": There should be at least one"},
		{"eleven", body(strings.Fields(strings.Repeat("x ", 11))...),
			queue.CodeTooManyEntriesInBatchRequest + ": Maximum number of entries per request are 10. You have sent 11."},
		{"too long", body(half, half, "x"),
			queue.CodeBatchRequestTooLong +
				": Batch requests cannot be longer than 1048576 bytes. You have sent 1048577 bytes."},
	} {
		_, err := q.Send(t.Context(), c.msgs)
		if err == nil || !strings.HasPrefix(describe(err), c.want) {
			t.Errorf("%s: %v", c.name, err)
		}
	}
	sent, err := q.Send(t.Context(), body("a", strings.Repeat("x", 1025), "", "b"))
	if err != nil || sent[0].Err != nil || sent[3].Err != nil || sent[1].Err == nil || sent[2].Err == nil ||
		sent[0].ID == "" || sent[1].ID != "" {
		t.Errorf("%+v %v", sent, err)
	}
	if got := texts(take(t, q, 10)); got != "a b" {
		t.Errorf("got %q", got)
	}
	if errs := q.Delete(t.Context(), make([]string, 11)); !strings.HasPrefix(describe(errs[0]),
		queue.CodeTooManyEntriesInBatchRequest) {
		t.Error(errs)
	}
}

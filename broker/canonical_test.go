package broker

import (
	"strings"
	"testing"

	"tendril/queue"
)

func TestG10ValuesAreStoredAndReturnedInCanonicalForm(t *testing.T) {
	t.Parallel()
	b := openTest(t, nil)
	create(t, b, "dead", nil)
	dead := b.ARN("dead")
	for _, c := range []struct{ name, attribute, given, want string }{
		{"leading zero", "VisibilityTimeout", "030", "30"},
		{"plus sign", "VisibilityTimeout", "+30", "30"},
		{"zero", "DelaySeconds", "000", "0"},
		{"count as a string", "RedrivePolicy", `{"maxReceiveCount":"5", "deadLetterTargetArn":"` + dead + `"}`,
			`{"deadLetterTargetArn":"` + dead + `","maxReceiveCount":5}`},
		{"count with a leading zero", "RedrivePolicy", `{"deadLetterTargetArn":"` + dead + `","maxReceiveCount":"07"}`,
			`{"deadLetterTargetArn":"` + dead + `","maxReceiveCount":7}`},
		{"boolean", "SqsManagedSseEnabled", "True", "true"},
	} {
		t.Run(c.name, func(t *testing.T) {
			name := strings.ReplaceAll(c.name, " ", "-")
			attributes := map[string]string{c.attribute: c.given}
			canonical := map[string]string{c.attribute: c.want}
			create(t, b, name, canonical)
			if err := b.CreateQueue(t.Context(), name, attributes, nil); err != nil {
				t.Errorf("creating it again with %q: %v", c.given, err)
			}
			if err := b.SetAttributes(t.Context(), name, attributes); err != nil {
				t.Fatal(err)
			}
			got, err := b.Attributes(name)
			if err != nil || got[c.attribute] != c.want {
				t.Errorf("returned %q, want %q: %v", got[c.attribute], c.want, err)
			}
		})
	}
}

// SQS accepts 38 digits, magnitudes from 10^-128 to 10^126, and no spaces.
func TestG12NumberAttributesHaveTheBoundsOfSQS(t *testing.T) {
	t.Parallel()
	digits := strings.Repeat("12345678901234567890", 2)
	for _, c := range []struct {
		name, value string
		valid       bool
	}{
		{"integer", "5", true},
		{"zero", "0", true},
		{"negative zero", "-0.000", true},
		{"fraction", "-12.50", true},
		{"only a fraction", ".5", true},
		{"only an integer and a dot", "5.", true},
		{"exponent", "+1.5E+3", true},
		{"38 digits", digits[:38], true},
		{"38 digits and zeros", "000" + digits[:37] + "1000000", true},
		{"39 digits", digits[:39], false},
		{"39 digits with a fraction", digits[:20] + "." + digits[20:39], false},
		{"the largest", "1e126", true},
		{"above the largest", "1.1e126", false},
		{"far above the largest", "1e127", false},
		{"the smallest", "1e-128", true},
		{"below the smallest", "9e-129", false},
		{"exponent that overflows", "1e400", false},
		{"exponent of many digits", "1e99999999999999999999", false},
		{"blanks", " 5 ", false},
		{"line break", "\n5", false},
		{"no digits", ".", false},
		{"sign only", "-", false},
		{"hexadecimal", "0x10", false},
		{"infinity", "Inf", false},
		{"two dots", "1.2.3", false},
		{"underscore", "1_000", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			err := checkAttributeValue(queue.Attribute{Name: "n", Type: "Number", Value: c.value})
			if (err == nil) != c.valid {
				t.Errorf("%q: %v, want valid %t", c.value, err, c.valid)
			}
		})
	}
}

func TestTagKeysHaveTheCharactersOfAmazon(t *testing.T) {
	t.Parallel()
	b := openTest(t, nil)
	create(t, b, "jobs", nil)
	for _, c := range []struct {
		name, key string
		valid     bool
	}{
		{"letters", "team", true},
		{"all punctuation", "a b_.:/=+-@1", true},
		{"letters outside ASCII", "größe", true},
		{"reserved prefix", "aws:team", false},
		{"reserved prefix in capitals", "AWS:team", false},
		{"angle brackets", "<x>", false},
		{"carriage return", "k\r", false},
		{"empty", "", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			tags := map[string]string{c.key: "v"}
			err := b.SetTags(t.Context(), "jobs", tags, nil)
			created := b.CreateQueue(t.Context(), "q-"+strings.ReplaceAll(c.name, " ", "-"), nil, tags)
			if (err == nil) != c.valid || (created == nil) != c.valid {
				t.Errorf("TagQueue %v, CreateQueue %v, want valid %t", err, created, c.valid)
			}
		})
	}
}

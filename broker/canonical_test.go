package broker

import (
	"path/filepath"
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

func TestG10OtherMembersAndValuesOfPoliciesAreRefused(t *testing.T) {
	t.Parallel()
	b := openTest(t, nil)
	create(t, b, "dead", nil)
	create(t, b, "work", nil)
	redrive := func(rest string) string { return `{"deadLetterTargetArn":"` + b.ARN("dead") + `"` + rest + `}` }
	for _, c := range []struct{ name, attribute, value, reason string }{
		{"null", "RedrivePolicy", redrive(`,"maxReceiveCount":null`), "Invalid value for maxReceiveCount: null."},
		{"float", "RedrivePolicy", redrive(`,"maxReceiveCount":5.0`), "Invalid value for maxReceiveCount: 5.0, valid"},
		{"exponent", "RedrivePolicy", redrive(`,"maxReceiveCount":1e1`), "Invalid value for maxReceiveCount: 1e1, valid"},
		{"text", "RedrivePolicy", redrive(`,"maxReceiveCount":"five"`), "Invalid value for maxReceiveCount: five, valid"},
		{"empty text", "RedrivePolicy", redrive(`,"maxReceiveCount":""`), "Invalid value for maxReceiveCount: , valid"},
		{"blank", "RedrivePolicy", redrive(`,"maxReceiveCount":" 5"`), "Invalid value for maxReceiveCount:  5, valid"},
		{"boolean", "RedrivePolicy", redrive(`,"maxReceiveCount":true`), "Invalid value for maxReceiveCount: true, valid"},
		{"list", "RedrivePolicy", redrive(`,"maxReceiveCount":[5]`), "Invalid value for maxReceiveCount: [5], valid"},
		{"unknown member", "RedrivePolicy", redrive(`,"maxReceiveCount":5,"x":1`),
			"Only following attributes are supported: [deadLetterTargetArn, maxReceiveCount]."},
		{"other case", "RedrivePolicy", redrive(`,"MaxReceiveCount":5`), "Only following attributes are supported"},
		{"target null", "RedrivePolicy", `{"deadLetterTargetArn":null,"maxReceiveCount":5}`, "Invalid value for deadLetterTargetArn"},
		{"target a number", "RedrivePolicy", `{"deadLetterTargetArn":5,"maxReceiveCount":5}`, "redrive policy, as it's in an unsupported"},
		{"empty object", "RedrivePolicy", `{}`, "does not contain mandatory attribute"},
		{"no object", "RedrivePolicy", `[]`, "redrive policy, as it's in an unsupported format"},
		{"sources null", "RedriveAllowPolicy", `{"redrivePermission":"denyAll","sourceQueueArns":null}`,
			"Invalid value for sourceQueueArns: null."},
		{"source null", "RedriveAllowPolicy", `{"redrivePermission":"byQueue","sourceQueueArns":[null]}`, "byQueue needs 1 to 10"},
		{"source empty", "RedriveAllowPolicy", `{"redrivePermission":"byQueue","sourceQueueArns":[""]}`, "byQueue needs 1 to 10"},
		{"permission null", "RedriveAllowPolicy", `{"redrivePermission":null}`, "Invalid value for redrivePermission: null."},
		{"unknown member of the other", "RedriveAllowPolicy", `{"redrivePermission":"denyAll","x":1}`,
			"Only following attributes are supported: [redrivePermission, sourceQueueArns]."},
		{"null instead of an object", "RedriveAllowPolicy", `null`, "redrivePermission must be"},
	} {
		t.Run(c.name, func(t *testing.T) {
			err := b.SetAttributes(t.Context(), "work", map[string]string{c.attribute: c.value})
			if err == nil || !strings.Contains(err.Error(), " for parameter "+c.attribute+" is invalid. Reason: ") ||
				!strings.Contains(err.Error(), c.reason) {
				t.Errorf("%s: %v", c.value, err)
			}
			if got, err := b.Attributes("work"); err != nil || got[c.attribute] != "" {
				t.Errorf("returned %q, %v", got[c.attribute], err)
			}
		})
	}
}

func TestStoredPoliciesLoseOtherMembers(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	b := openDir(t, dir, quiet())
	create(t, b, "dead", nil)
	closeBroker(t, b)
	target := `{"deadLetterTargetArn":"` + b.ARN("dead") + `"`
	c, err := openDatabase(filepath.Join(dir, databaseName))
	if err != nil {
		t.Fatal(err)
	}
	stored := rawJSON(map[string]string{"RedrivePolicy": target + `,"maxReceiveCount":null,"x":1}`,
		"RedriveAllowPolicy": `{"redrivePermission":"denyAll","sourceQueueArns":null}`})
	if n, err := c.exec(`UPDATE queues SET attributes = ?`, string(stored)); n != 1 || err != nil {
		t.Fatalf("%d queues, %v", n, err)
	}
	c.close()

	got, err := openDir(t, dir, quiet()).Attributes("dead")
	if err != nil || got["RedrivePolicy"] != target+"}" || got["RedriveAllowPolicy"] != `{"redrivePermission":"denyAll"}` {
		t.Errorf("read %v, %v", got, err)
	}
}

package send

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tendril/internal/cli/base"
	"tendril/queue"
)

func TestParseAttribute(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]queue.Attribute{
		"kind=thumb":          {Name: "kind", Type: "String", Value: "thumb"},
		"q=a=b:c":             {Name: "q", Type: "String", Value: "a=b:c"},
		"n:Number=3":          {Name: "n", Type: "Number", Value: "3"},
		"n:Number=-1.5e3":     {Name: "n", Type: "Number", Value: "-1.5e3"},
		"n:Number.int=3":      {Name: "n", Type: "Number.int", Value: "3"},
		"s:String.tag=x":      {Name: "s", Type: "String.tag", Value: "x"},
		"raw:Binary=AP8=":     {Name: "raw", Type: "Binary", Value: "\x00\xff"},
		"raw:Binary.png=AP8=": {Name: "raw", Type: "Binary.png", Value: "\x00\xff"},
	} {
		got, err := parseAttribute(text)
		if err != nil {
			t.Errorf("%s: %v", text, err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: (-want +got)\n%s", text, diff)
		}
	}
	for text, want := range map[string]string{
		"kind":             "no =",
		"=x":               "no name",
		"kind=":            "empty",
		"n:Number=three":   `"three" is not a number`,
		"n:Number=0x10":    "is not a number",
		"n:Number=Inf":     "is not a number",
		"raw:Binary=no!":   "base64",
		"n:Float=3":        `unknown type "Float"`,
		"n:=3":             `unknown type ""`,
		"n:Numbers=3":      `unknown type "Numbers"`,
		":Number=3":        "no name",
		"raw:Binary.x=é":   "base64",
		"s:string=x":       `unknown type "string"`,
		"n:Number.int=1_0": "is not a number",
	} {
		if _, err := parseAttribute(text); err == nil || !strings.Contains(err.Error(), want) || base.ExitCode(err) != base.ExitUsage {
			t.Errorf("%s: %v (exit %d), want a usage error with %q", text, err, base.ExitCode(err), want)
		}
	}
	if _, err := parseAttributes([]string{"a=1", "b=2", "a=3"}); err == nil || !strings.Contains(err.Error(), "duplicate") {
		t.Errorf("a duplicate name: %v", err)
	}
}

package sqswire

import (
	"encoding/hex"
	"testing"

	"tendril/queue"
)

// The first two digests are from Amazon's examples and recorded responses, the others from an independent Python
// implementation.
func TestF5AttributesMD5(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name       string
		attributes []queue.Attribute
		want       string
	}{
		{"one string", []queue.Attribute{{Name: "my_attribute_name_1", Type: "String", Value: "my_attribute_value_1"}},
			"8ef4d60dbc8efda9f260e1dfd09d29f3"},
		{"one number", []queue.Attribute{{Name: "timestamp", Type: "Number", Value: "1493147359900"}},
			"235c5c510d26fb653d073faed50ae77c"},
		{"every kind, unsorted", []queue.Attribute{
			{Name: "city", Type: "String", Value: "Zürich"},
			{Name: "blob", Type: "Binary", Value: "\x00\x01\xff"},
			{Name: "Age", Type: "Number.int", Value: "42"},
			{Name: "pic", Type: "Binary.png", Value: "\x89PNG"},
		}, "7d27f47c539111889fc6cd2d8a3f561c"},
		{"trace header", []queue.Attribute{{Name: "AWSTraceHeader", Type: "String",
			Value: "Root=1-5759e988-bd862e3fe1be46a994272793;Sampled=1"}}, "5f48eef650c1d0207456969c85af2fdd"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			sum := AttributesMD5(test.attributes)
			if got := hex.EncodeToString(sum[:]); got != test.want {
				t.Errorf("AttributesMD5 = %q, want %q", got, test.want)
			}
		})
	}
}

func TestAttributesMD5LeavesTheOrderAlone(t *testing.T) {
	t.Parallel()
	attributes := []queue.Attribute{{Name: "b", Type: "String", Value: "1"}, {Name: "a", Type: "String", Value: "2"}}
	AttributesMD5(attributes)
	if attributes[0].Name != "b" {
		t.Error("AttributesMD5 sorted its argument")
	}
}

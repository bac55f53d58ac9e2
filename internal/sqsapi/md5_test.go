package sqsapi

import "testing"

func TestBodyMD5(t *testing.T) {
	t.Parallel()
	if got, want := string(appendBodyMD5(nil, "hello, wörld")), "05fd7869d57f5b5e39fe33ebb9b43631"; got != want {
		t.Errorf("bodyMD5 = %q, want %q", got, want)
	}
}

func TestNoAttributesHaveNoMD5(t *testing.T) {
	t.Parallel()
	if got := string(appendAttributesMD5(nil, nil)); got != "" {
		t.Errorf("attributesMD5 = %q, want none", got)
	}
}

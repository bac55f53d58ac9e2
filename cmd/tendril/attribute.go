package main

import (
	"encoding/base64"
	"fmt"
	"math/big"
	"strings"

	"tendril/queue"
)

// parseAttributes reads --attr flags.
func parseAttributes(texts []string) ([]queue.Attribute, error) {
	var attributes []queue.Attribute
	seen := map[string]bool{}
	for _, text := range texts {
		a, err := parseAttribute(text)
		if err != nil {
			return nil, err
		}
		if seen[a.Name] {
			return nil, fail(exitUsage, fmt.Errorf("--attr %s is given twice", a.Name), "an attribute has one value")
		}
		seen[a.Name] = true
		attributes = append(attributes, a)
	}
	return attributes, nil
}

// parseAttribute reads name=value or name:Type=value. The value of a Binary is
// base64.
func parseAttribute(text string) (queue.Attribute, error) {
	const forms = "write name=text, name:Number=3, name:String.label=text or name:Binary=AAE="
	refuse := func(format string, args ...any) (queue.Attribute, error) {
		return queue.Attribute{}, fail(exitUsage, fmt.Errorf("--attr %s: "+format, append([]any{text}, args...)...), forms)
	}
	name, value, found := strings.Cut(text, "=")
	name, kind, typed := strings.Cut(name, ":")
	if !typed {
		kind = "String"
	}
	a := queue.Attribute{Name: name, Type: kind, Value: value}
	base, _, _ := strings.Cut(kind, ".")
	switch {
	case !found:
		return refuse("there is no = between name and value")
	case name == "":
		return refuse("there is no name")
	case value == "":
		return refuse("the value is empty, which SQS refuses")
	case base == "Number":
		if _, ok := new(big.Float).SetString(value); !ok || strings.ContainsAny(value, "_xXpPiI") {
			return refuse("%q is no number", value)
		}
	case base == "Binary":
		data, err := base64.StdEncoding.DecodeString(value)
		if err != nil {
			return refuse("the value is not base64")
		}
		a.Value = string(data)
	case base != "String":
		return refuse("%q is no type; there are String, Number and Binary", kind)
	}
	return a, nil
}

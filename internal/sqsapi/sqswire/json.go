package sqswire

import "github.com/go-json-experiment/json/jsontext"

// AppendString appends s as a JSON string. Invalid UTF-8 becomes U+FFFD, as in encoding/json.
func AppendString(dst []byte, s string) []byte {
	dst, _ = jsontext.AppendQuote(dst, s) // the error only reports replaced bytes
	return dst
}

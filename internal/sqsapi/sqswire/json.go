package sqswire

import "github.com/go-json-experiment/json/jsontext"

// AppendString appends s to dst as a JSON string. Bytes that are not UTF-8 become
// U+FFFD, as in encoding/json.
func AppendString(dst []byte, s string) []byte {
	dst, _ = jsontext.AppendQuote(dst, s) // the error tells of bytes that became U+FFFD
	return dst
}

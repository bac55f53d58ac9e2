package sqsapi

import (
	"crypto/md5"
	"encoding/binary"
	"encoding/hex"
	"slices"
	"strings"

	"tendril/queue"
)

// bodyMD5 returns the MD5 digest of a message body in hexadecimal, which
// clients compare with their own. It guards against corruption, not against
// attackers.
func bodyMD5(body string) string { return string(appendBodyMD5(nil, body)) }

func appendBodyMD5(dst []byte, body string) []byte {
	sum := md5.Sum([]byte(body))
	return hex.AppendEncode(dst, sum[:])
}

// attributesMD5 returns the digest of attributes as SQS defines it, "" for
// none: sorted by name, each as length and name, length and type, one byte
// that tells text (1) from binary (2), length and value; lengths are four
// bytes, most significant first.
func attributesMD5(attributes []queue.Attribute) string {
	if len(attributes) == 0 {
		return ""
	}
	return string(appendAttributesMD5(nil, attributes))
}

func appendAttributesMD5(dst []byte, attributes []queue.Attribute) []byte {
	byName := func(a, b queue.Attribute) int { return strings.Compare(a.Name, b.Name) }
	if !slices.IsSortedFunc(attributes, byName) {
		attributes = slices.Clone(attributes)
		slices.SortFunc(attributes, byName)
	}
	var scratch [512]byte
	text := scratch[:0]
	for i := range attributes {
		a := &attributes[i]
		text = appendSized(text, a.Name)
		text = appendSized(text, a.Type)
		if a.IsBinary() {
			text = append(text, 2)
		} else {
			text = append(text, 1)
		}
		text = appendSized(text, a.Value)
	}
	sum := md5.Sum(text)
	return hex.AppendEncode(dst, sum[:])
}

func appendSized(dst []byte, s string) []byte {
	dst = binary.BigEndian.AppendUint32(dst, uint32(len(s)))
	return append(dst, s...)
}

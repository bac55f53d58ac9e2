package sqswire

import (
	"crypto/md5"
	"encoding/binary"
	"unsafe"

	"tendril/queue"
)

// BodyMD5 returns the digest of a message body.
func BodyMD5(body string) [md5.Size]byte {
	return md5.Sum(unsafe.Slice(unsafe.StringData(body), len(body))) // the bytes are only read
}

// appendAttribute appends an attribute as SQS passes it to MD5: length and name, length and type, 1 for text or 2 for
// binary, length and value. Lengths are big-endian uint32.
//
// Source: Amazon SQS Developer Guide, "Calculating the MD5 message digest for message attributes".
func appendAttribute(dst []byte, a *queue.Attribute) []byte {
	dst = appendSized(dst, a.Name)
	dst = appendSized(dst, a.Type)
	kind := byte(1)
	if a.IsBinary() {
		kind = 2
	}
	return appendSized(append(dst, kind), a.Value)
}

func appendSized(dst []byte, s string) []byte {
	dst = binary.BigEndian.AppendUint32(dst, uint32(len(s)))
	return append(dst, s...)
}

// AttributesMD5 returns the digest of attributes, which can be in any order. SQS omits the digest of no attributes.
func AttributesMD5(attributes []queue.Attribute) [md5.Size]byte {
	attributes = queue.SortedAttributes(attributes)
	var scratch [512]byte
	input := scratch[:0]
	for i := range attributes {
		input = appendAttribute(input, &attributes[i])
	}
	return md5.Sum(input)
}

package sqsapi

import (
	"crypto/md5"
	"encoding/hex"

	"tendril/queue"
	"tendril/sqswire"
)

// bodyMD5 returns the MD5 digest of a message body in hexadecimal, which
// clients compare with their own. It guards against corruption, not against
// attackers.
func bodyMD5(body string) string { return string(appendBodyMD5(nil, body)) }

func appendBodyMD5(dst []byte, body string) []byte {
	sum := md5.Sum([]byte(body))
	return hex.AppendEncode(dst, sum[:])
}

// attributesMD5 returns the digest of attributes in hexadecimal, "" for none.
func attributesMD5(attributes []queue.Attribute) string {
	if len(attributes) == 0 {
		return ""
	}
	return string(appendAttributesMD5(nil, attributes))
}

func appendAttributesMD5(dst []byte, attributes []queue.Attribute) []byte {
	sum := sqswire.AttributesMD5(attributes)
	return hex.AppendEncode(dst, sum[:])
}

package envelope

import (
	"encoding/json"
	"strconv"
	"strings"
)

const (
	maxBucket = 255     // longer than any bucket name ever allowed
	maxKey    = 1024    // S3's limit in bytes
	maxBody   = 8 << 10 // enough for a pointer with a fully escaped key
)

// parsePointer parses the format of Amazon's extended client libraries:
//
// ["software.amazon.payloadoffloading.PayloadS3Pointer",{"s3BucketName":"b","s3Key":"k"}]
//
// The class may also be MessageS3Pointer, as in the first Java client, in any package. The sender controls the
// pointer, so the caller must check the bucket.
func parsePointer(body string) (bucket, key string, ok bool) {
	text := strings.TrimLeft(body, " \t\r\n")
	if len(text) > maxBody || !strings.HasPrefix(text, "[") {
		return "", "", false
	}

	var parts []json.RawMessage
	if json.Unmarshal([]byte(text), &parts) != nil || len(parts) != 2 {
		return "", "", false
	}
	var class string
	var location map[string]any // a struct would ignore the case of field names
	if json.Unmarshal(parts[0], &class) != nil || !isPointerClass(class) || json.Unmarshal(parts[1], &location) != nil {
		return "", "", false
	}

	bucket, _ = location["s3BucketName"].(string)
	key, _ = location["s3Key"].(string)
	if bucket == "" || len(bucket) > maxBucket || key == "" || len(key) > maxKey {
		return "", "", false
	}

	return bucket, key, true
}

func isPointerClass(class string) bool {
	name := class[strings.LastIndexByte(class, '.')+1:]
	return name != class && (name == "PayloadS3Pointer" || name == "MessageS3Pointer")
}

// leavesBucket reports whether the key has a segment "." or "..", perhaps percent-encoded several times: a server that
// normalizes paths could resolve it to another bucket.
func leavesBucket(key string) bool {
	for {
		for part := range strings.FieldsFuncSeq(key, func(r rune) bool { return r == '/' || r == '\\' }) {
			name, _, _ := strings.Cut(part, ";") // some servers ignore path parameters
			if name == "." || name == ".." {
				return true
			}
		}
		decoded := percentDecoded(key)
		if decoded == key {
			return false
		}
		key = decoded
	}
}

// percentDecoded leaves invalid escapes unchanged.
func percentDecoded(text string) string {
	var b strings.Builder
	for i := 0; i < len(text); i++ {
		if text[i] == '%' && i+2 < len(text) {
			if c, err := strconv.ParseUint(text[i+1:i+3], 16, 8); err == nil {
				b.WriteByte(byte(c))
				i += 2
				continue
			}
		}
		b.WriteByte(text[i])
	}
	return b.String()
}

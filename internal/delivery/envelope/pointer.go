package envelope

import (
	"encoding/json"
	"strconv"
	"strings"
)

const (
	maxBucket = 255     // longer than any bucket name that S3 ever allowed
	maxKey    = 1024    // bytes, the limit of S3
	maxBody   = 8 << 10 // bytes of a pointer with every character of its key escaped
)

// parsePointer parses a body that says where in S3 the payload is, in the format of
// Amazon's extended clients:
//
//	["software.amazon.payloadoffloading.PayloadS3Pointer",{"s3BucketName":"b","s3Key":"k"}]
//
// The first element is a class name: this one, or
// com.amazon.sqs.javamessaging.MessageS3Pointer of the first Java client, or either
// in another package, as in copies of the library. ok is false for every other body.
// The sender of the message controls the pointer, so it must not decide which buckets
// are read.
func parsePointer(body string) (bucket, key string, ok bool) {
	text := strings.TrimLeft(body, " \t\r\n")
	if len(text) > maxBody || !strings.HasPrefix(text, "[") {
		return "", "", false
	}
	var parts []json.RawMessage
	var class string
	var location map[string]any // a struct would also accept names in another case
	if json.Unmarshal([]byte(text), &parts) != nil || len(parts) != 2 ||
		json.Unmarshal(parts[0], &class) != nil || json.Unmarshal(parts[1], &location) != nil || !isPointerClass(class) {
		return "", "", false
	}
	bucket, _ = location["s3BucketName"].(string)
	key, _ = location["s3Key"].(string)
	if bucket == "" || len(bucket) > maxBucket || key == "" || len(key) > maxKey {
		return "", "", false
	}
	return bucket, key, true
}

// isPointerClass checks the last part of a class name.
func isPointerClass(class string) bool {
	name := class[strings.LastIndexByte(class, '.')+1:]
	return name != class && (name == "PayloadS3Pointer" || name == "MessageS3Pointer")
}

// leavesBucket reports whether a key has a part that a server which normalises paths
// takes for a step to another folder, and so to another bucket: . or .. between
// slashes of either kind, also where it is percent-encoded, once or several times.
func leavesBucket(key string) bool {
	for {
		for part := range strings.FieldsFuncSeq(key, func(r rune) bool { return r == '/' || r == '\\' }) {
			name, _, _ := strings.Cut(part, ";") // some servers leave parameters out
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

// percentDecoded decodes what can be decoded, once.
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

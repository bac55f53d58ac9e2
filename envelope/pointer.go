package envelope

import (
	"encoding/json"
	"strings"
)

const (
	maxBucket = 255     // longer than any bucket name that S3 ever allowed
	maxKey    = 1024    // bytes, the limit of S3
	maxBody   = 8 << 10 // bytes of a pointer with every character of its key escaped
)

// Pointer parses a body that says where in S3 the payload is, in the format of
// Amazon's extended clients:
//
//	["software.amazon.payloadoffloading.PayloadS3Pointer",{"s3BucketName":"b","s3Key":"k"}]
//
// The first element is a class name: this one, or
// com.amazon.sqs.javamessaging.MessageS3Pointer of the first Java client, or either
// in another package, as in copies of the library. ok is false for every other body.
// The sender of the message controls the pointer, so it must not decide which buckets
// are read.
func Pointer(body string) (bucket, key string, ok bool) {
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

package envelope

import (
	"encoding/json"
	"strings"
)

const (
	maxBucket = 255     // longer than any name that S3 ever allowed
	maxKey    = 1024    // bytes, as S3 has it
	maxBody   = 8 << 10 // of a pointer, with every character of the key escaped
)

// Pointer reads a body that says where in S3 the message lies, as the extended
// clients of Amazon write it:
//
//	["software.amazon.payloadoffloading.PayloadS3Pointer",{"s3BucketName":"b","s3Key":"k"}]
//
// The first element is the name of a class: this one, or
// com.amazon.sqs.javamessaging.MessageS3Pointer of the first Java client, or either
// in another package, as in copies of the library. ok is false for every other
// body. A pointer is data from whoever sent the message: it says where to look, not
// that one may.
func Pointer(body string) (bucket, key string, ok bool) {
	text := strings.TrimLeft(body, " \t\r\n")
	if len(text) > maxBody || !strings.HasPrefix(text, "[") {
		return "", "", false
	}
	var parts []json.RawMessage
	var class string
	var place map[string]any // a struct would also take the names in another case
	if json.Unmarshal([]byte(text), &parts) != nil || len(parts) != 2 ||
		json.Unmarshal(parts[0], &class) != nil || json.Unmarshal(parts[1], &place) != nil || !isPointerClass(class) {
		return "", "", false
	}
	bucket, _ = place["s3BucketName"].(string)
	key, _ = place["s3Key"].(string)
	if bucket == "" || len(bucket) > maxBucket || key == "" || len(key) > maxKey {
		return "", "", false
	}
	return bucket, key, true
}

// isPointerClass looks at the last part of the class's name.
func isPointerClass(class string) bool {
	name := class[strings.LastIndexByte(class, '.')+1:]
	return name != class && (name == "PayloadS3Pointer" || name == "MessageS3Pointer")
}

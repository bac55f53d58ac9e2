package aws

import (
	"crypto/sha1"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"hash"
	"hash/crc32"
	"hash/crc64"
	"net/http"
	"strings"
)

// objectChecksums are the checksums that S3 can keep with an object, by the header that has them in base64
// (Amazon S3 User Guide, "Checking object integrity").
var objectChecksums = []struct {
	header string
	make   func() hash.Hash
}{
	{"X-Amz-Checksum-Crc64nvme", func() hash.Hash { return crc64.New(crc64.MakeTable(0x9a6c9329ac4bc9b5)) }},
	{"X-Amz-Checksum-Crc32c", func() hash.Hash { return crc32.New(crc32.MakeTable(crc32.Castagnoli)) }},
	{"X-Amz-Checksum-Crc32", func() hash.Hash { return crc32.NewIEEE() }},
	{"X-Amz-Checksum-Sha256", sha256.New},
	{"X-Amz-Checksum-Sha1", sha1.New},
}

// checkObject compares an object with the first checksum of its answer. A checksum of an object that was sent in parts
// is that of the checksums of its parts, which the answer does not have: it ends with their number and is not compared.
func checkObject(header http.Header, contents []byte) error {
	for _, checksum := range objectChecksums {
		want := header.Get(checksum.header)
		if want == "" || strings.Contains(want, "-") {
			continue
		}
		sum := checksum.make()
		sum.Write(contents)
		if got := base64.StdEncoding.EncodeToString(sum.Sum(nil)); got != want {
			return fmt.Errorf("the contents do not match their checksum: %s is %s, not %s",
				strings.ToLower(checksum.header), got, want)
		}
		return nil
	}
	return nil
}

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

// Source: Amazon S3 User Guide, "Checking object integrity".
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

// verifyChecksum ignores composite checksums of multipart uploads, which end in "-" and the number of parts: verifying
// them would require the size of each part.
func verifyChecksum(header http.Header, contents []byte) error {
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

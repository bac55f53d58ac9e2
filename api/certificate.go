package api

import (
	"crypto/sha256"
	"encoding/hex"
)

// fingerprint is that of a certificate in DER.
func CertificateFingerprint(der []byte) string {
	sum := sha256.Sum256(der)
	return hex.EncodeToString(sum[:])
}

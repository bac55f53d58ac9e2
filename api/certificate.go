package api

import (
	"crypto/sha256"
	"encoding/hex"
)

// CertificateFingerprint returns the hexadecimal SHA-256 of a DER certificate.
func CertificateFingerprint(der []byte) string {
	sum := sha256.Sum256(der)
	return hex.EncodeToString(sum[:])
}

package broker

import (
	"crypto/subtle"
	"encoding/base64"
	"encoding/binary"

	"tendril/queue"
)

// receipt is what a receipt handle says: which message, by which of its
// receives, in which life of the store. The key names the queue too, so a
// handle is of no use on another one.
type receipt struct {
	key    int64
	serial uint32 // the message's receive count at that receive
	epoch  uint32 // grows each time the store is opened
}

// A handle is the receipt and a 128-bit authentication code, in base64: nobody
// can make one, or change one, without the store's secret.
const receiptSize = 32

func (s seal) handle(work *block, r receipt) string {
	var raw [receiptSize]byte
	binary.BigEndian.PutUint64(raw[:8], uint64(r.key))
	binary.BigEndian.PutUint32(raw[8:], r.serial)
	binary.BigEndian.PutUint32(raw[12:], r.epoch)
	s.receiptMAC(work, r)
	copy(raw[16:], work[:])
	var text [44]byte
	base64.URLEncoding.Encode(text[:], raw[:])
	return string(text[:])
}

func (s seal) receiptMAC(out *block, r receipt) {
	s.prf2(out, domainReceipt, uint64(r.key), uint64(r.serial)<<32|uint64(r.epoch))
}

// open reads a handle. Its error is ReceiptHandleIsInvalid for anything that
// this store did not give out.
func (s seal) open(work *block, handle string) (receipt, error) {
	var raw [36]byte
	if len(handle) != 44 {
		return receipt{}, errHandle(handle)
	}
	n, err := base64.URLEncoding.Strict().Decode(raw[:], []byte(handle))
	if err != nil || n != receiptSize {
		return receipt{}, errHandle(handle)
	}
	r := receipt{
		key:    int64(binary.BigEndian.Uint64(raw[:8])),
		serial: binary.BigEndian.Uint32(raw[8:]),
		epoch:  binary.BigEndian.Uint32(raw[12:]),
	}
	s.receiptMAC(work, r)
	if subtle.ConstantTimeCompare(work[:], raw[16:receiptSize]) != 1 {
		return receipt{}, errHandle(handle)
	}
	return r, nil
}

// errHandle refuses a handle that is none of this queue's.
func errHandle(handle string) error {
	return queue.Errorf(queue.CodeReceiptHandleIsInvalid, `The input receipt handle "%s" is not a valid receipt handle.`,
		clip(handle))
}

// errReceipt refuses a handle that was good once.
func errReceipt(handle, reason string) error {
	return queue.Errorf(queue.CodeInvalidParameterValue, "Value %s for parameter ReceiptHandle is invalid. Reason: %s",
		clip(handle), reason)
}

// clip bounds what a request can put into an error message.
func clip(s string) string {
	const most = 512
	if len(s) <= most {
		return s
	}
	return s[:most] + "..."
}

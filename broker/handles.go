package broker

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/subtle"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"

	"tendril/queue"
)

// A key is the primary key of a message row: the queue's number in the high
// bits, the place in the queue below, so that a queue is a contiguous range:
// sends append at its right edge, deletes free its left one.
const (
	seqBits   = 40
	maxQueues = 1<<22 - 1
	maxSeq    = 1<<seqBits - 1
)

func makeKey(queue, seq int64) int64 { return queue<<seqBits | seq }

func keySeq(key int64) int64 { return key & maxSeq }

// sequenceNumber renders a key as a FIFO sequence number: 20 digits, growing
// with the key, not consecutive.
func sequenceNumber(key int64) string {
	const base = 10_000_000_000_000_000_000
	return strconv.FormatUint(base+uint64(keySeq(key))<<8, 10)
}

// seal derives message ids and receipt handles from keys with a secret that
// lies in the store, so that neither takes space on disk.
type seal struct{ block cipher.Block }

func newSeal(secret []byte) (seal, error) {
	block, err := aes.NewCipher(secret)
	if err != nil {
		return seal{}, fmt.Errorf("using the store's secret: %w", err)
	}
	return seal{block}, nil
}

// block is memory for one block of the cipher, passed down because what is given
// to a cipher lies on the heap.
type block [aes.BlockSize]byte

// The domains keep one use of the secret apart from another.
const (
	domainIDHigh  = 1
	domainIDLow   = 2
	domainReceipt = 3
)

// prf is a pseudo-random function of words and a domain: AES of one block for each word,
// chained. It returns the first half of out.
func (s seal) prf(out *block, domain byte, words ...uint64) uint64 {
	*out = block{15: domain}
	for _, word := range words {
		binary.BigEndian.PutUint64(out[:8], binary.BigEndian.Uint64(out[:8])^word)
		s.block.Encrypt(out[:], out[:])
	}
	return binary.BigEndian.Uint64(out[:8])
}

const (
	idHighMask = 1<<60 - 1 // of the first half: all but the version
	idLowMask  = 1<<62 - 1 // of the second half: all but the variant
)

// messageID is the message id that belongs to the key under which a message
// was sent: a version 4 UUID that looks random and leads back to the key.
func (s seal) messageID(work *block, origin int64) string {
	high := s.prf(work, domainIDHigh, uint64(origin)) & idHighMask
	low := uint64(origin) ^ s.prf(work, domainIDLow, high)&idLowMask
	binary.BigEndian.PutUint64(work[:8], high>>12<<16|0x4000|high&0xfff)
	binary.BigEndian.PutUint64(work[8:], 2<<62|low)
	var text [36]byte
	hex.Encode(text[:8], work[:4])
	hex.Encode(text[9:13], work[4:6])
	hex.Encode(text[14:18], work[6:8])
	hex.Encode(text[19:23], work[8:10])
	hex.Encode(text[24:], work[10:])
	text[8] = '-'
	text[13] = '-'
	text[18] = '-'
	text[23] = '-'
	return string(text[:])
}

// origin returns the key that a message id was made from; false for an id
// that is not of this store.
func (s seal) origin(id string) (int64, bool) {
	raw, err := hex.DecodeString(strings.ReplaceAll(id, "-", ""))
	if err != nil || len(raw) != 16 || len(id) != 36 {
		return 0, false
	}
	first, second := binary.BigEndian.Uint64(raw[:8]), binary.BigEndian.Uint64(raw[8:])
	high := first>>16<<12 | first&0xfff
	work := new(block)
	origin := int64((second ^ s.prf(work, domainIDLow, high)) & idLowMask)
	return origin, s.messageID(work, origin) == strings.ToLower(id)
}

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
	s.prf(work, domainReceipt, binary.BigEndian.Uint64(raw[:8]), binary.BigEndian.Uint64(raw[8:]))
	copy(raw[16:], work[:])
	var text [44]byte
	base64.URLEncoding.Encode(text[:], raw[:])
	return string(text[:])
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
	first, second := binary.BigEndian.Uint64(raw[:8]), binary.BigEndian.Uint64(raw[8:])
	s.prf(work, domainReceipt, first, second)
	if subtle.ConstantTimeCompare(work[:], raw[16:receiptSize]) != 1 {
		return receipt{}, errHandle(handle)
	}
	return receipt{key: int64(first), serial: uint32(second >> 32), epoch: uint32(second)}, nil
}

// errHandle refuses a handle that this queue did not give out.
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

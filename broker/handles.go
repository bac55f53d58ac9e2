package broker

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/subtle"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"strconv"
	"strings"

	"github.com/google/uuid"

	"tendril/queue"
)

// A key is a message's primary key: the queue's number, then the position in the queue.
const (
	seqBits   = 40
	maxQueues = 1<<22 - 1
	maxSeq    = 1<<seqBits - 1
)

func makeKey(queue, seq int64) int64 { return queue<<seqBits | seq }

func keySeq(key int64) int64 { return key & maxSeq }

// sequenceNumber returns 20 digits. Sequence numbers increase but are not consecutive.
func sequenceNumber(key int64) string {
	const base = 10_000_000_000_000_000_000
	return strconv.FormatUint(base+uint64(keySeq(key))<<8, 10)
}

// seal derives message IDs and receipt handles from keys and the store's secret, so they need not be stored.
type seal struct{ block cipher.Block }

func newSeal(secret []byte) (seal, error) {
	block, err := aes.NewCipher(secret)
	if err != nil {
		return seal{}, fmt.Errorf("reading the secret of the queue database: %w", err)
	}
	return seal{block}, nil
}

// block is a scratch buffer that callers reuse, because arguments of a cipher escape to the heap.
type block [aes.BlockSize]byte

const (
	domainIDHigh  = 1
	domainIDLow   = 2
	domainReceipt = 3
)

func (s seal) prf(out *block, domain byte, words ...uint64) uint64 {
	*out = block{15: domain}
	for _, word := range words {
		binary.BigEndian.PutUint64(out[:8], binary.BigEndian.Uint64(out[:8])^word)
		s.block.Encrypt(out[:], out[:])
	}
	return binary.BigEndian.Uint64(out[:8])
}

const (
	idHighMask = 1<<60 - 1 // without the version bits of a UUID
	idLowMask  = 1<<62 - 1 // without the variant bits
)

func (s seal) messageID(work *block, origin int64) string {
	high := s.prf(work, domainIDHigh, uint64(origin)) & idHighMask
	low := uint64(origin) ^ s.prf(work, domainIDLow, high)&idLowMask
	binary.BigEndian.PutUint64(work[:8], high>>12<<16|0x4000|high&0xfff)
	binary.BigEndian.PutUint64(work[8:], 2<<62|low)
	return uuid.UUID(*work).String()
}

func (b *Broker) messageID(origin int64) string { return b.seal.messageID(new(block), origin) }

func (s seal) origin(id string) (int64, bool) {
	raw, err := uuid.Parse(id)
	if err != nil {
		return 0, false
	}
	first, second := binary.BigEndian.Uint64(raw[:8]), binary.BigEndian.Uint64(raw[8:])
	high := first>>16<<12 | first&0xfff
	work := new(block)
	origin := int64((second ^ s.prf(work, domainIDLow, high)) & idLowMask)
	return origin, s.messageID(work, origin) == strings.ToLower(id)
}

// receipt is a decoded receipt handle.
type receipt struct {
	key    int64
	serial uint32 // number of the receive, counted or not
	epoch  uint32
}

const (
	receiptSize = 32 // in bytes, with a 128-bit authentication code
	handleSize  = 44 // in base64
)

func (s seal) handle(work *block, r receipt) string {
	var raw [receiptSize]byte
	binary.BigEndian.PutUint64(raw[:8], uint64(r.key))
	binary.BigEndian.PutUint32(raw[8:], r.serial)
	binary.BigEndian.PutUint32(raw[12:], r.epoch)
	s.prf(work, domainReceipt, binary.BigEndian.Uint64(raw[:8]), binary.BigEndian.Uint64(raw[8:]))
	copy(raw[16:], work[:])
	var text [handleSize]byte
	base64.URLEncoding.Encode(text[:], raw[:])
	return string(text[:])
}

func (s seal) open(work *block, handle string) (receipt, error) {
	if len(handle) != handleSize {
		return receipt{}, errHandle(handle)
	}
	var raw [handleSize]byte
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

func errHandle(handle string) error {
	return queue.Errorf(queue.CodeReceiptHandleIsInvalid, `The input receipt handle "%s" is not a valid receipt handle.`,
		clip(handle))
}

func errReceipt(handle, reason string) error {
	return errParameter("ReceiptHandle", handle, reason)
}

func clip(s string) string {
	const most = 512
	if len(s) <= most {
		return s
	}
	return s[:most] + "..."
}

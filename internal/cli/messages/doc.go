// Package messages lists, receives, moves, deletes and replays messages.
//
// A selector chooses messages, a source reads them from an embedded queue or Amazon SQS, and a loop processes them:
// peek, dead list and dead show print messages; dead redrive, delete and export act on them.
package messages

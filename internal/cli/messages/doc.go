// Package messages lists, receives, moves, deletes and replays messages.
//
// A selector chooses messages, and a source reads them from an embedded queue or Amazon SQS.
package messages

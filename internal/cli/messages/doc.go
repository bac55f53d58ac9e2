// Package messages shows, receives, moves, deletes and replays the messages of queues.
//
// One selector says which messages are meant, one source reads them from an embedded queue or from Amazon SQS, and one
// loop acts on them: peek, dead list and dead show collect what is selected; dead redrive, delete and export act on it.
package messages

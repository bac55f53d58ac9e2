// Package inspect shows what environments do and did.
//
// ps, status, health, top, describe, doctor, events, logs, scale and instances ask the running environment. Where none
// runs, describe and doctor look at what 'tendril up' would run, and events and logs read the files that it left.
package inspect

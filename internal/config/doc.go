// Package config reads the settings, knows where each came from, and refuses bad ones with advice.
//
// Everything that can be set is one row of one table, [Options]: its name in
// each notation, kind, default, range, help. Flags, variables, the settings
// file, messages, documentation ([Reference]) and completion are made of it.
// To add an option, add a field to [Settings] and a row whose value names that field.
//
//	default < bundle < file < environment < flag        [Load]
//	             |       |         |          |
//	             |       |         |          --http-path, --concurrency
//	             |       |         TENDRIL_HTTP_PATH > TENDRIL_SQSD_HttpPath
//	             |       |           > WORKERLESS_..., AWS_REGION, PORT > SQSD_...
//	             |       tendril.yaml: http_path, sqsd: {HttpPath},
//	             |       queues: [{name, weight, http_path}]
//	             |       or a file of aws-sqsd, unchanged
//	             the folder's name, its option settings: HttpPath, MinSize
//	                     |
//	                     v
//	   every value checked, overridden or not     -> *Error: all problems at once
//	   what follows from others worked out           (backend, queue, region, ...)
//	   what is allowed but rarely intended        -> Config.Warnings
//
// # Invariants
//
// Settings.Queues holds each queue with all that holds for it, also when there
// is one. A queue's own setting counts before that of all queues, from
// whatever layer that is. A stronger layer that names the queues names them
// all; a warning says which settings are not used then. Of target, function
// and lambda a queue has at most one.
//
// A [Config] exists only when every value of every layer was right. Each value
// has an origin: file and line, variable or flag ([Config.Origin],
// [Config.Explain]). What was written counts, not what YAML would make of
// it: 000000000012 and off stay as they are. A message never shows a password that
// somebody put into a URL.
//
// # When something is wrong
//
// A [Problem] says where, what, what is allowed, and the line to write
// instead. A mistyped name is answered with the nearest known ones. A name that is
// known elsewhere (aws-sqsd, Workerless) and has no effect here is reported, never
// silently ignored. Files are bounded, and the parts of YAML that make small files
// large are refused before parsing.
//
// # What it does not do
//
// It opens no socket, resolves no name and creates no folder: whether a queue
// exists, a port is free or a folder can be written is found out by those who
// use them. It knows no flag library: the command makes flags of the table and
// hands back those that were given.
//
// # Its size
//
// The package has more than 4,000 lines because it holds every option: the table and the
// rules of values, the readers of each notation, and the advice for each way to get a setting
// wrong. An option is one row, and nothing outside knows where a value came from.
package config

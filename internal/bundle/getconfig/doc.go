// Package getconfig implements Elastic Beanstalk's get-config tool for scripts.
//
// Scripts call /opt/elasticbeanstalk/bin/get-config to get environment properties, option settings and paths. The
// running environment writes these facts to a [Folder], and the get-config command reads them:
//
//	environment --> Folder.Publish --> get-config/v7/facts.json   hooks, build commands
//	                                   get-config/v7/app.json     the app, if it is another user
//	                                   get-config/current -> v7   all others
//	                                   get-config/bin/get-config -> tendril
//
// Each version of the app has its own facts, so that hooks of a version being deployed see its settings.
//
// Facts may be secret: each file has mode 0600 and belongs to tendril's user or the app's user. Root only reads files
// that no other user can write. The folder is removed when the environment stops. Without a data directory it is a
// temporary folder locked by its process; the next start removes leftovers of killed processes.
//
// Source: AWS Elastic Beanstalk Developer Guide, "Platform script tools for your Elastic Beanstalk environments". The
// guide does not document meta and its key sqsdconfig; they use the keys of aws-sqsd's settings file.
package getconfig

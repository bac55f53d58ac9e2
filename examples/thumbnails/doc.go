// Command thumbnails is a sample app: it draws landscapes, queues a job for each, and creates a thumbnail for each
// job received as a POST.
//
// It does not depend on tendril: it listens on PORT and sends with the AWS SDK to the queue in its environment. The
// same program runs behind Elastic Beanstalk's worker daemon.
//
//	draw a scene -> out/source/007-noon.png -> SendMessage {"image":"007-noon.png","width":240}
//	POST / {"image":"007-noon.png","width":240} -> out/007-noon.png, 200
package main

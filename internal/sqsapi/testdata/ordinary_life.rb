# What a program does with the first generation of the SDK for Ruby, which speaks the Query protocol.
require 'aws-sdk-v1'
require 'digest'
require 'uri'

endpoint = URI(ENV.fetch('AWS_ENDPOINT_URL_SQS'))
sqs = AWS::SQS.new(access_key_id: 'test', secret_access_key: 'test', sqs_endpoint: endpoint.host,
                   sqs_port: endpoint.port, use_ssl: false, sqs_region: 'us-east-1')

def check(holds, what)
  abort "not so: #{what}" unless holds
end

queue = sqs.queues.create('jobs', visibility_timeout: 45)
check queue.url.end_with?('/000000000000/jobs'), "the URL is #{queue.url}"
check sqs.queues.named('jobs').url == queue.url, 'its URL is found by its name'
check queue.visibility_timeout == 45, 'the visibility timeout is kept'

body = "<Zürich> & \"quotes\" \\ \n 😀"
sent = queue.send_message(body)
check sent.md5 == Digest::MD5.hexdigest(body), 'the digest of the body'

message = queue.receive_message(attributes: [:all], wait_time_seconds: 1)
check message.body == body && message.id == sent.id, 'the message comes as it was sent'
check message.approximate_receive_count == 1, 'received once'
check queue.receive_message.nil?, 'nobody else gets it'
message.visibility_timeout = 0
again = queue.receive_message(attributes: [:all])
check again.id == message.id && again.approximate_receive_count == 2, 'it comes again'
again.delete

check queue.batch_send(%w[one two three]).length == 3, 'a batch is sent'
three = queue.receive_message(limit: 10)
check three.map(&:body).sort == %w[one three two], 'all of the batch come'
queue.batch_delete(three)
check queue.approximate_number_of_messages.zero?, 'nothing is left'

begin
  sqs.queues["#{queue.url}-absent"].send_message('x')
  abort 'a queue that does not exist is an error'
rescue AWS::SQS::Errors::NonExistentQueue
  # as Amazon names it
end
queue.delete

require 'rails'
require 'active_job/railtie'
require 'action_controller/railtie'
Bundler.require(*Rails.groups)

module Worker
  class Application < Rails::Application
    config.active_job.queue_adapter = :active_elastic_job
    config.active_elastic_job.process_jobs = ENV['PROCESS_ACTIVE_ELASTIC_JOBS'] == 'true'
    config.active_elastic_job.periodic_tasks_route = '/periodic_tasks'
  end
end

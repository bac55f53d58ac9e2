class CleanupJob < ActiveJob::Base
  def perform(*)
    Rails.logger.info 'cleaned up'
  end
end

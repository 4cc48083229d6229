-- Answers the first seq and the bodies.
return { first_seq(), redis.call('LRANGE', pending, '0', '-1') }

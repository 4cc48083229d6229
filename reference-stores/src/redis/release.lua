-- ARGV: owner, lease, now. Answers 1, or nil without the lease.
if not held_lease(ARGV[1], ARGV[2], ARGV[3]) then
  return false
end
end_lease()
return 1

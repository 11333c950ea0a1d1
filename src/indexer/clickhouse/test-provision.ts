import type { ProvisionedPlan, ProvisionedUser } from './provision.ts'

/** A plan and an account, for tests of the statements that create them. */
export const TEST_PLAN: ProvisionedPlan = {
  plan: 'pro-1',
  database: 'chain',
  tables: ['transactions', 'coverage'],
  secondsMax: 30,
  rowsMax: 1_000_000,
  bytesMax: 64 * 1024 * 1024,
  memoryBytesMax: 4_000_000_000,
  readRowsMax: 5_000_000_000,
  concurrent: 4,
  queriesPerHour: 5000,
}

export const TEST_USER: ProvisionedUser = {
  username: 'u_abc123',
  sha256: '0'.repeat(64),
  salt: 'abcdefgh12345678',
  hosts: ['10.1.0.0/24', '::1'],
  plan: 'pro-1',
  database: 'chain',
}

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ServiceError } from '../../core/error.ts'
import { storeFailure } from './state.ts'

test('an older store is a warning, which a restart settles; a damaged one is a failure', () => {
  const older = storeFailure(new ServiceError('store-older', 'tables of version 6'))
  assert.deepEqual([older.level, /restart Sluice/.test('fix' in older ? older.fix : '')], ['warn', true])
  const damaged = storeFailure(new ServiceError('store-corrupt', 'a row is damaged', { fix: 'restore a backup' }))
  assert.deepEqual([damaged.level, 'fix' in damaged && damaged.fix], ['bad', 'restore a backup'])
})

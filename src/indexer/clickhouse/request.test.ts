import assert from 'node:assert/strict'
import { test } from 'node:test'
import { readQueryRequest } from '../query/request.ts'
import { clickHouseTarget } from './request.ts'

const FORCED = { queryId: 'q', database: 'chain', limits: { secondsMax: 10, rowsMax: 1000, bytesMax: 1000 } }

test('the revision in which a client reads Native is passed on as a number', () => {
  const revisionOf = (search: string) => {
    const request = readQueryRequest(search, { format: undefined, database: undefined }, new Set(['chain']))
    return new URLSearchParams(clickHouseTarget(request, FORCED).slice(2)).get('client_protocol_version')
  }
  assert.equal(revisionOf('query=1&client_protocol_version=54460'), '54460')
  assert.equal(revisionOf('query=1'), null)
  assert.throws(() => revisionOf('query=1&client_protocol_version=x'), { type: 'BAD_ARGUMENTS' })
})

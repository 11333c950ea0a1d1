import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { JsonFloat, JsonText, jsonFloat, parseExactJson, writeJson } from './json.ts'

describe('writeJson', () => {
  it('prints u64 exactly and leaves out undefined members', () => {
    const value = { a: 18446744073709551615n, b: undefined, c: [1n, null, true, 'x"\n', 0.5], d: {}, e: [] }
    assert.equal(writeJson(value), '{"a":18446744073709551615,"c":[1,null,true,"x\\"\\n",0.5],"d":{},"e":[]}')
  })

  it('prints integral floats as Agave does, and null for numbers that JSON lacks', () => {
    assert.equal(
      writeJson([jsonFloat(1), jsonFloat(0.25), jsonFloat(0), jsonFloat(Number.POSITIVE_INFINITY), Number.NaN]),
      '[1.0,0.25,0.0,null,null]',
    )
    assert.equal(writeJson({ raw: new JsonText('{"a":1e2}') }), '{"raw":{"a":1e2}}')
  })
})

describe('parseExactJson', () => {
  it('keeps large integers and distinguishes floats from integers', () => {
    const parsed = parseExactJson('[18446744073709551615,9007199254740993,7,-1,1.0,2e3,"12345678901234567890"]')
    assert.deepEqual(parsed, [
      18446744073709551615n,
      9007199254740993n,
      7,
      -1,
      new JsonFloat(1),
      new JsonFloat(2000),
      '12345678901234567890',
    ])
  })
})

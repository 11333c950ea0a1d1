SELECT date_trunc('minute', block_time) AS minute, count() AS blocks, sum(tx_count) AS txs FROM blocks GROUP BY minute ORDER BY minute
SELECT date_trunc('hour', block_time) AS h, countIf(success) AS ok, countIf(NOT success) AS failed, round(100 * failed / (ok + failed), 2) AS pct FROM transactions GROUP BY h ORDER BY h
SELECT dateTrunc('day', block_time) AS d, uniqExact(fee_payer) AS payers FROM transactions GROUP BY d ORDER BY d
SELECT date_trunc('week', block_time) AS w, date_trunc('month', block_time) AS m, date_trunc('year', block_time) AS y FROM blocks LIMIT 1
SELECT toStartOfSecond(toDateTime64(block_time, 3)) AS s, count() AS c FROM blocks GROUP BY s ORDER BY s LIMIT 4
SELECT toStartOfInterval(block_time, INTERVAL 5 SECOND) AS t, avg(tx_count) AS a, max(tx_count) AS b FROM blocks GROUP BY t ORDER BY t
SELECT toStartOfInterval(block_time, INTERVAL 15 MINUTE, 'UTC') AS t, count() AS n FROM blocks GROUP BY t ORDER BY t
SELECT toStartOfInterval(toDate('2024-05-17'), INTERVAL 3 MONTH) AS q, toStartOfInterval(toDate('2024-05-17'), INTERVAL 1 WEEK) AS w
SELECT toIntervalMinute(5) AS i, toTypeName(toIntervalMinute(5)) AS t
SELECT toDateTime('2024-02-29 12:00:00', 'UTC') + INTERVAL 1 YEAR AS a, toDateTime('2024-01-31 00:00:00', 'UTC') + INTERVAL 1 MONTH AS b
SELECT toDate('2024-03-31') - INTERVAL 1 MONTH AS a, toDate('2024-03-31') + 7 AS b, toDate('2024-03-31') - toDate('2024-01-01') AS c
SELECT dateDiff('second', min(block_time), max(block_time)) AS span FROM blocks
SELECT dateDiff('day', toDate('2024-01-01'), toDate('2024-12-31')) AS d, dateDiff('week', toDate('2024-01-01'), toDate('2024-12-31')) AS w, dateDiff('month', toDate('2024-01-01'), toDate('2024-12-31')) AS m
SELECT date_diff('hour', toDateTime('2024-01-01 23:30:00'), toDateTime('2024-01-02 01:10:00')) AS h, age('hour', toDateTime('2024-01-01 23:30:00'), toDateTime('2024-01-02 01:10:00')) AS a
SELECT timestamp_diff('minute', toDateTime('2024-01-01 00:00:59'), toDateTime('2024-01-01 00:02:00')) AS m
SELECT date_add(DAY, 3, toDate('2024-02-27')) AS a, date_sub(MONTH, 2, toDate('2024-03-31')) AS b
SELECT dateAdd(HOUR, 5, toDateTime('2024-01-01 22:00:00', 'UTC')) AS a, dateSub(MINUTE, 30, toDateTime('2024-01-01 00:10:00', 'UTC')) AS b
SELECT addDays(toDate('2024-01-30'), 3) AS a, addMonths(toDate('2024-01-31'), 1) AS b, subtractDays(toDateTime('2024-01-01 00:00:00', 'UTC'), 1) AS c, addHours(block_time, 1) - block_time AS d FROM blocks LIMIT 1
SELECT slot, block_time - lagInFrame(block_time) OVER (ORDER BY slot ROWS BETWEEN 1 PRECEDING AND CURRENT ROW) AS gap FROM blocks ORDER BY slot LIMIT 5 OFFSET 1
SELECT toHour(block_time) AS hour_of_day, toDayOfWeek(block_time) AS dow, count() AS c FROM transactions GROUP BY hour_of_day, dow ORDER BY hour_of_day, dow
SELECT formatDateTime(block_time, '%F %T') AS t, formatDateTime(block_time, '%Y-W%V') AS w FROM blocks ORDER BY slot LIMIT 2
SELECT formatDateTime(toDateTime('2024-03-05 07:08:09', 'UTC'), '%e %b %Y %I:%M %p') AS a, formatDateTime(toDateTime('2024-03-05 07:08:09', 'UTC'), '%j %W %M') AS b
SELECT dateName('month', toDate('2024-03-05')) AS m, dateName('weekday', toDate('2024-03-05')) AS w, monthName(toDate('2024-03-05')) AS n
SELECT toRelativeDayNum(toDate('2024-03-05')) AS d, toRelativeHourNum(toDateTime('2024-03-05 07:08:09', 'UTC')) AS h, toRelativeMinuteNum(toDateTime('2024-03-05 07:08:09', 'UTC')) AS m
SELECT toYearWeek(toDate('2024-12-30')) AS a, toWeek(toDate('2024-12-30')) AS b, toISOYear(toDate('2024-12-30')) AS c, toISOWeek(toDate('2024-12-30')) AS d
SELECT toLastDayOfWeek(toDate('2024-03-05')) AS a, toLastDayOfMonth(toDate('2024-02-05')) AS b, toStartOfISOYear(toDate('2024-03-05')) AS c
SELECT makeDate(2024, 3, 5) AS a, makeDateTime(2024, 3, 5, 7, 8, 9, 'UTC') AS b
SELECT toUnixTimestamp(block_time) AS u, toUnixTimestamp64Milli(toDateTime64(block_time, 3)) AS ms FROM blocks ORDER BY slot LIMIT 2
SELECT fromUnixTimestamp64Milli(1700000000123, 'UTC') AS a, fromUnixTimestamp64Micro(1700000000123456, 'UTC') AS b
SELECT parseDateTime('2024-03-05 07:08:09', '%Y-%m-%d %H:%i:%S', 'UTC') AS a, parseDateTimeBestEffort('05 Mar 2024 07:08:09', 'UTC') AS b
SELECT parseDateTime64BestEffort('2024-03-05 07:08:09.123', 3, 'UTC') AS a, parseDateTimeBestEffortOrZero('x') AS b
SELECT toDateOrNull('nope') AS a, toDateOrZero('nope') AS b, toDateTimeOrNull('2024-01-01 00:00:00') AS c, toDateOrDefault('bad') AS d
SELECT EXTRACT(YEAR FROM toDate('2024-03-05')) AS y, EXTRACT(MONTH FROM toDate('2024-03-05')) AS m, EXTRACT(DAY FROM toDate('2024-03-05')) AS d
SELECT extract(hour FROM block_time) AS h, count() AS c FROM blocks GROUP BY h ORDER BY h
SELECT YEAR(block_time) AS y, MONTH(block_time) AS m, DAY(block_time) AS d, HOUR(block_time) AS h FROM blocks ORDER BY slot LIMIT 1
SELECT DATE(block_time) AS d, count() AS c FROM blocks GROUP BY d
SELECT toDate(block_time) = toDate('2023-11-14') AS same, count() AS c FROM blocks GROUP BY same ORDER BY same
SELECT timeSlot(toDateTime('2024-03-05 07:48:09', 'UTC')) AS a
SELECT toTime(toDateTime('2024-03-05 07:48:09', 'UTC')) > toTime(toDateTime('2024-03-06 06:00:00', 'UTC')) AS later
SELECT toYYYYMM(toDate('2024-03-05')) * 100 + 1 AS a, YYYYMMDDToDate(20240305) AS b
SELECT toMillisecond(toDateTime64('2024-03-05 07:08:09.456', 3, 'UTC')) AS ms, toDateTime64('2024-03-05 07:08:09.456', 3, 'UTC') + toIntervalMillisecond(600) AS t
SELECT toTimezone(toDateTime('2024-07-01 12:00:00', 'UTC'), 'Europe/Berlin') AS b, timezoneOf(toDateTime('2024-07-01 12:00:00', 'UTC')) AS z, timezoneOffset(toDateTime('2024-07-01 12:00:00', 'Europe/Berlin')) AS o
SELECT count() AS c FROM transactions WHERE block_time BETWEEN toDateTime('2023-11-14 22:13:20', 'UTC') AND toDateTime('2023-11-14 22:13:30', 'UTC')
SELECT count() AS c FROM blocks WHERE block_time >= '2023-11-14 22:13:22' AND block_time < '2023-11-14 22:13:26'
SELECT count() AS c FROM transactions WHERE toDate(block_time) IN ('2023-11-14', '2023-11-15')
SELECT fee_payer, count() AS n FROM transactions GROUP BY fee_payer ORDER BY n DESC, fee_payer LIMIT 3 WITH TIES
SELECT n, count() AS payers FROM (SELECT fee_payer, count() AS n FROM transactions GROUP BY fee_payer) GROUP BY n ORDER BY n DESC LIMIT 2 WITH TIES
SELECT program_id, count() AS n, rank() OVER (ORDER BY count() DESC) AS r FROM instructions GROUP BY program_id ORDER BY r, program_id LIMIT 5
SELECT * FROM (SELECT mint, to_owner, sum(amount) AS total, row_number() OVER (PARTITION BY mint ORDER BY sum(amount) DESC, to_owner) AS rn FROM token_transfers GROUP BY mint, to_owner) WHERE rn <= 2 ORDER BY mint, rn LIMIT 10
SELECT slot, fee_payer, fee FROM transactions ORDER BY fee DESC, slot, tx_index LIMIT 1 BY slot LIMIT 5
SELECT slot, tx_index, fee FROM transactions QUALIFY row_number() OVER (PARTITION BY slot ORDER BY fee DESC, tx_index) = 1 ORDER BY slot LIMIT 5
SELECT topK(3)(kind) AS k, topKWeighted(1)(reward_type, post_balance) AS w FROM token_transfers AS x INNER JOIN rewards AS r ON x.slot = r.slot
SELECT reward_type, sum(lamports) AS s, bar(sum(lamports), 0, 100000000, 20) AS b FROM rewards GROUP BY reward_type ORDER BY s DESC
SELECT fee_payer, session, count() AS n FROM (SELECT fee_payer, sum(is_new) OVER (PARTITION BY fee_payer ORDER BY slot, tx_index ROWS UNBOUNDED PRECEDING) AS session FROM (SELECT fee_payer, slot, tx_index, slot - lagInFrame(slot, 1, 0) OVER (PARTITION BY fee_payer ORDER BY slot, tx_index ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING) > 3 AS is_new FROM transactions)) GROUP BY fee_payer, session ORDER BY n DESC, fee_payer, session LIMIT 5
SELECT slot, tx_count, avg(tx_count) OVER (ORDER BY slot ROWS BETWEEN 2 PRECEDING AND CURRENT ROW) AS ma3 FROM blocks ORDER BY slot LIMIT 6
SELECT slot, sum(tx_count) OVER (ORDER BY slot RANGE BETWEEN 3 PRECEDING AND CURRENT ROW) AS s FROM blocks ORDER BY slot LIMIT 6
SELECT slot, tx_index, fee, sum(fee) OVER w AS running, count() OVER w AS n FROM transactions WINDOW w AS (PARTITION BY slot ORDER BY tx_index ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) ORDER BY slot, tx_index LIMIT 5
SELECT slot, first_value(blockhash) OVER (ORDER BY slot) = blockhash AS is_first, last_value(slot) OVER (ORDER BY slot ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING) AS last FROM blocks ORDER BY slot LIMIT 3
SELECT slot, leadInFrame(slot, 1, 0) OVER (ORDER BY slot ROWS BETWEEN CURRENT ROW AND 1 FOLLOWING) AS next FROM blocks ORDER BY slot DESC LIMIT 3
SELECT slot, lag(slot) OVER (ORDER BY slot) AS prev, lead(slot, 2) OVER (ORDER BY slot) AS next2 FROM blocks ORDER BY slot LIMIT 4
SELECT slot, ntile(4) OVER (ORDER BY slot) AS q, dense_rank() OVER (ORDER BY intDiv(slot, 4)) AS g FROM blocks ORDER BY slot LIMIT 6
SELECT slot, tx_count, tx_count / sum(tx_count) OVER () AS share FROM blocks ORDER BY slot LIMIT 3
SELECT slot, nth_value(slot, 2) OVER (ORDER BY slot ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING) AS second FROM blocks ORDER BY slot LIMIT 2
SELECT slot, groupArray(slot) OVER (ORDER BY slot ROWS BETWEEN 1 PRECEDING AND 1 FOLLOWING) AS around FROM blocks ORDER BY slot LIMIT 3
SELECT slot, max(fee) - min(fee) AS spread, any(spread) OVER (ORDER BY slot ROWS BETWEEN 1 PRECEDING AND 1 PRECEDING) AS before FROM transactions GROUP BY slot ORDER BY slot LIMIT 3
SELECT slot, exponentialMovingAverage(2)(tx_count, slot) OVER (ORDER BY slot) AS e FROM blocks ORDER BY slot LIMIT 3
SELECT fee_payer, percent_rank() OVER (ORDER BY f) AS p, cume_dist() OVER (ORDER BY f) AS c FROM (SELECT fee_payer, sum(fee) AS f FROM transactions GROUP BY fee_payer) ORDER BY f, fee_payer LIMIT 4
SELECT arrayZip(['a', 'b'], [1, 2]) AS z, arrayZip([1, 2], [3, 4], ['x', 'y']).1 AS f
SELECT arrayEnumerate(signers) AS e, length(signers) AS l FROM transactions ORDER BY slot, tx_index LIMIT 2
SELECT arrayEnumerateUniq(['a', 'b', 'a', 'a']) AS u, arrayEnumerateDense(['x', 'y', 'x']) AS d
SELECT arraySort(x -> -x, [3, 1, 2]) AS a, arraySort((x, y) -> y, ['a', 'b', 'c'], [3, 1, 2]) AS b
SELECT arrayReverseSort(x -> length(x), ['a', 'ccc', 'bb']) AS a, arrayReverseSort([3, 9, 4]) AS b
SELECT arrayReduce('sum', [1, 2, 3]) AS s, arrayReduce('max', [1.5, 2.5]) AS m, arrayReduce('uniqExact', ['a', 'a', 'b']) AS u
SELECT arraySort(groupUniqArray(kind)) AS kinds, length(groupUniqArray(mint)) AS mints FROM token_transfers
SELECT arraySort(groupUniqArrayArray(program_ids)) AS programs FROM transactions
SELECT length(groupArrayArray(signers)) AS n, count() AS txs FROM transactions
SELECT slot, groupArray(3)(tx_index) AS firsts FROM (SELECT slot, tx_index FROM transactions ORDER BY slot, tx_index) GROUP BY slot ORDER BY slot LIMIT 2
SELECT arrayDistinct(arrayConcat(signers, account_keys)) AS k, length(k) AS n FROM transactions ORDER BY slot, tx_index LIMIT 1
SELECT arrayUniq([1, 1, 2], [1, 2, 2]) AS a, arrayUniq(['x', 'x']) AS b
SELECT arrayMap((x, i) -> x * i, [10, 20, 30], arrayEnumerate([10, 20, 30])) AS a
SELECT arrayMap(x -> (x, x * x), range(4)) AS p, arrayMap(x -> x.2, p) AS s
SELECT arrayFilter((x, y) -> y > 1, ['a', 'b', 'c'], [1, 2, 3]) AS f, arrayFilter(x -> x LIKE '%a%', ['bar', 'foo']) AS g
SELECT arrayCount(x -> x > 2, [1, 2, 3, 4]) AS c, arrayExists(x -> x = 3, [1, 2, 3]) AS e, arrayAll(x -> x > 0, [1, 2]) AS a
SELECT arrayFirst(x -> x > 2, [1, 2, 3, 4]) AS a, arrayLast(x -> x < 3, [1, 2, 3]) AS b, arrayFirstIndex(x -> x > 2, [1, 2, 3]) AS c, arrayLastIndex(x -> x > 0, [1, 2, 3]) AS d
SELECT arrayFirstOrNull(x -> x > 9, [1, 2, 3]) AS a, arrayLastOrNull(x -> x < 3, [1, 2, 3]) AS b
SELECT arraySum(x -> x * 2, [1, 2, 3]) AS a, arrayAvg([1, 2, 4]) AS b, arrayMin([3, 1]) AS c, arrayMax(x -> -x, [3, 1]) AS d
SELECT arrayCumSum([1, 2, 3]) AS a, arrayCumSumNonNegative([1, -5, 3]) AS b, arrayDifference([1, 4, 9]) AS c, arrayProduct([2, 3, 4]) AS d
SELECT arraySlice([1, 2, 3, 4, 5], 2, 3) AS a, arraySlice([1, 2, 3, 4, 5], -2) AS b, arraySlice(['a', 'b', 'c'], 1, -1) AS c
SELECT arrayShiftLeft([1, 2, 3], 1) AS a, arrayShiftRight([1, 2, 3], 1, 9) AS b, arrayRotateLeft([1, 2, 3], 1) AS c, arrayRotateRight([1, 2, 3], 1) AS d
SELECT arrayJoin(arrayZip(['a', 'b'], [1, 2])) AS t, t.1 AS name, t.2 AS v
SELECT signer, count() AS n FROM transactions ARRAY JOIN signers AS signer GROUP BY signer ORDER BY n DESC, signer LIMIT 4
SELECT slot, tx_index, num, key FROM transactions ARRAY JOIN account_keys AS key, arrayEnumerate(account_keys) AS num ORDER BY slot, tx_index, num LIMIT 5
SELECT t.slot, p FROM transactions AS t LEFT ARRAY JOIN t.program_ids AS p ORDER BY t.slot, t.tx_index, p LIMIT 5
SELECT has(program_ids, '11111111111111111111111111111111') AS sys, count() AS c FROM transactions GROUP BY sys ORDER BY sys
SELECT hasAny([1, 2], [2, 9]) AS a, hasAll([1, 2, 3], [1, 3]) AS b, hasSubstr([1, 2, 3, 4], [2, 3]) AS c
SELECT indexOf(['a', 'b'], 'b') AS a, countEqual([1, 2, 1], 1) AS b, arrayIntersect([1, 2, 3], [2, 3, 4]) AS c, arrayElementOrNull([1, 2], 5) AS d
SELECT arraySort(arrayUnion([1, 2], [2, 3])) AS u, arraySort(arraySymmetricDifference([1, 2], [2, 3])) AS s
SELECT arrayFill(x -> x != 0, [1, 0, 0, 4]) AS f, arrayReverseFill(x -> x != 0, [1, 0, 0, 4]) AS r
SELECT arraySplit(x -> x = 3, [1, 2, 3, 4, 5]) AS s, arrayReverseSplit(x -> x = 3, [1, 2, 3, 4, 5]) AS r
SELECT arrayFold((acc, x) -> acc + x * 2, [1, 2, 3], toInt64(0)) AS f
SELECT arrayStringConcat(arrayMap(x -> toString(x), range(1, 6)), '-') AS s, arrayStringConcat(['a', 'b']) AS t
SELECT range(0, 10, 3) AS a, arrayResize([1, 2], 4, 7) AS b, arrayWithConstant(3, 'x') AS c, emptyArrayString() AS d
SELECT arrayPushBack([1, 2], 3) AS a, arrayPushFront(['b'], 'a') AS b, arrayPopBack([1, 2]) AS c, arrayPopFront([1, 2]) AS d
SELECT arrayCompact([1, 1, 2, 2, 1]) AS a, arrayFlatten([[1, 2], [3]]) AS b, arrayReverse([1, 2, 3]) AS c, empty([]) AS d, notEmpty([1]) AS e
SELECT arrayDotProduct([1, 2, 3], [4, 5, 6]) AS d
SELECT [1, 2, 3][2] AS a, ['x', 'y'][-1] AS b, (1, 'a').2 AS c, tupleElement((5, 6), 1) AS d, length([1, NULL, 3]) AS e
SELECT arrayMin(arrayMap(x -> toFloat64(x), groupArray(fee))) AS lo, arrayReduce('avg', groupArray(fee)) AS mean FROM transactions
SELECT countArray(signers) AS a, sumArray([1, 2]) AS b FROM transactions
SELECT groupArraySorted(3)(fee) AS a FROM (SELECT t.fee, x.kind FROM transactions AS t INNER JOIN token_transfers AS x USING (slot, tx_index))
SELECT groupArrayMovingSum(2)(x) AS m, groupArrayMovingAvg(2)(x) AS a FROM (SELECT number AS x FROM numbers(4))
SELECT sumForEach([number, number * 2]) AS s, maxForEach([number, 5]) AS m FROM numbers(4)
SELECT map('a', 1, 'b', 2) AS m, m['a'] AS v, m['z'] AS missing, mapKeys(m) AS k, mapValues(m) AS vs, length(m) AS l
SELECT mapFilter((k, v) -> v > 1, map('a', 1, 'b', 2)) AS f, mapApply((k, v) -> (upper(k), v * 10), map('a', 1)) AS a
SELECT mapAdd(map('a', 1), map('a', 2, 'b', 3)) AS s, mapSubtract(map('a', 5), map('a', 2)) AS d, mapContains(map('a', 1), 'a') AS c
SELECT mapSort(map('b', 2, 'a', 1)) AS s, mapReverseSort(map('b', 2, 'a', 1)) AS r, mapExists((k, v) -> v = 2, map('b', 2)) AS e, mapAll((k, v) -> v = 2, map('b', 2)) AS a
SELECT mapUpdate(map('a', 1, 'b', 2), map('b', 9)) AS u, mapFromArrays(['x', 'y'], [1, 2]) AS f
SELECT mapConcat(map('a', 1), map('c', 3)) AS c
SELECT sumMap(map(kind, amount)) AS by_kind FROM token_transfers WHERE slot = (SELECT min(slot) FROM token_transfers)
SELECT sumMap([kind], [toUInt64(1)]) AS m FROM token_transfers
SELECT maxMap(map(kind, toUInt32(decimals))) AS a, minMap(map(kind, toUInt32(decimals))) AS b FROM token_transfers
SELECT mapKeys(CAST((groupArray(k), groupArray(n)), 'Map(String, UInt64)')) AS keys FROM (SELECT kind AS k, count() AS n FROM token_transfers GROUP BY kind ORDER BY kind)
SELECT k, v FROM (SELECT map('a', 1, 'b', 2) AS m) ARRAY JOIN mapKeys(m) AS k, mapValues(m) AS v ORDER BY k
SELECT JSONExtractString('{"a":"x","b":{"c":5}}', 'a') AS a, JSONExtractInt('{"a":"x","b":{"c":5}}', 'b', 'c') AS c, JSONExtractFloat('{"p":1.5}', 'p') AS p, JSONExtractBool('{"t":true}', 't') AS t
SELECT JSONExtract('{"a":[1,2,3]}', 'a', 'Array(UInt8)') AS a, JSONExtract('{"a":{"b":"x"}}', 'a', 'Tuple(b String)').b AS t
SELECT JSONExtract('{"x":1,"y":2}', 'Map(String, UInt64)') AS m, JSONExtract('{"n":null}', 'n', 'Nullable(Int64)') AS n
SELECT JSONExtractKeysAndValues('{"a":1,"b":2}', 'Int64') AS kv, JSONExtractKeysAndValuesRaw('{"a":[1],"b":"x"}') AS raw
SELECT JSON_VALUE('{"a":{"b":7}}', '$.a.b') AS v, JSON_QUERY('{"a":{"b":7}}', '$.a') AS q, JSON_EXISTS('{"a":1}', '$.a') AS e
SELECT JSONLength('{"a":[1,2,3]}', 'a') AS l, JSONHas('{"a":1}', 'b') AS h, isValidJSON('{a}') AS v, JSONArrayLength('[1,2,3]') AS n
SELECT simpleJSONExtractInt('{"abc":-5}', 'abc') AS a, simpleJSONExtractString('{"abc":"q"}', 'abc') AS b, simpleJSONHas('{"abc":1}', 'abc') AS c
SELECT toJSONString([1, 2]) AS a, toJSONString(map('k', 'v')) AS b, toJSONString((1, 'x')) AS c, toJSONString('q"uote') AS d
SELECT arrayMap(x -> JSONExtractInt(x, 'v'), JSONExtractArrayRaw('[{"v":1},{"v":2}]')) AS v, arraySum(v) AS s
SELECT JSONExtractString(err, 'InstructionError') AS e, count() AS c FROM transactions WHERE err != '' GROUP BY e ORDER BY c DESC, e LIMIT 3
SELECT splitByChar('.', 'a.b.c') AS a, splitByString('::', 'x::y') AS b, splitByRegexp('[0-9]+', 'a1b22c') AS c, splitByWhitespace(' a  b ') AS d
SELECT splitByNonAlpha('a, b; c') AS a, alphaTokens('ab12cd') AS b, splitByChar(',', 'a,b,c', 2) AS c
SELECT extractAll('id=12 id=345', '[0-9]+') AS a, extract('user-77', '([0-9]+)') AS b, extractGroups('k=v', '(\\w)=(\\w)') AS c, extractAllGroupsVertical('a=1 b=2', '(\\w)=(\\d)') AS d
SELECT replaceRegexpAll('a1b2', '[0-9]', '#') AS a, replaceRegexpOne('hello', '(l+)', '<\\1>') AS b, replaceOne('aaa', 'a', 'b') AS c, replaceAll('aaa', 'a', 'bb') AS d, replace('x-y', '-', '+') AS e
SELECT substring('clickhouse', 1, 5) AS a, substr('clickhouse', -5) AS b, mid('clickhouse', 3, 2) AS c, left('clickhouse', 3) AS d, right('clickhouse', 3) AS e
SELECT substring(signature, 1, 4) AS prefix, count() AS c FROM transactions GROUP BY prefix ORDER BY c DESC, prefix LIMIT 3
SELECT position('haystack', 's') AS a, position('Haystack', 'z') AS b, positionCaseInsensitive('HayStack', 's') AS c, locate('s', 'haystack') AS d, position('x' IN 'axb') AS e
SELECT lower('ABC') AS a, upper('abc') AS b, lower('ÄB') AS c, initcap('hello world') AS e
SELECT concat('a', 1, 'b') AS a, 'x' || 'y' AS b, concatWithSeparator('-', 'a', 'b', 'c') AS c, concat_ws('/', 'p', 'q') AS d
SELECT format('{} and {}', 'a', 'b') AS a, format('{1}-{0}', 'x', 'y') AS b, printf('%05d|%.2f|%s', 42, 3.14159, 'z') AS c
SELECT leftPad('7', 3, '0') AS a, rightPad('ab', 5, '*') AS b, lpad('x', 3) AS c, rpad('x', 3, '-') AS d, leftPadUTF8('ä', 3, '·') AS e
SELECT hex(255) AS a, hex('abc') AS b, unhex('616263') AS c, lower(hex(toUInt64(1000))) AS d, bin(5) AS e
SELECT reverse('abc') AS a, reverseUTF8('äbc') AS b, char(72, 105) AS e, ascii('A') AS f
SELECT length('äbc') AS a, lengthUTF8('äbc') AS b, char_length('äbc') AS c, empty('') AS d, notEmpty('x') AS e, octet_length('äbc') AS f
SELECT trim('  x ') AS a, trimLeft('  x ') AS b, trimRight(' x  ') AS c, trim(BOTH 'x' FROM 'xxaxx') AS d, ltrim('  y') AS e, trim(LEADING '0' FROM '007') AS f
SELECT startsWith(signature, '1') AS s, endsWith('report.csv', '.csv') AS e, count() AS c FROM transactions GROUP BY s ORDER BY s
SELECT countSubstrings('banana', 'an') AS a, countMatches('banana', 'a.') AS b, multiSearchAny('hello', ['xx', 'll']) AS c, multiSearchFirstIndex('hello', ['xx', 'll']) AS d
SELECT match('abc123', '^[a-z]+[0-9]+$') AS a, 'abc' LIKE 'a%' AS b, 'ABC' ILIKE 'a_c' AS c, 'abc' NOT LIKE '%z%' AS d, like('abc', '%b%') AS e, 'abc' REGEXP 'b' AS f
SELECT substringIndex('a.b.c', '.', 2) AS a, substringUTF8('äöü', 2, 1) AS b, appendTrailingCharIfAbsent('path', '/') AS c
SELECT translate('hello', 'el', 'ip') AS a, levenshteinDistance('kitten', 'sitting') AS d
SELECT encodeURLComponent('a b&c') AS a, decodeURLComponent('a%20b') AS b, encodeXMLComponent('<a>') AS c, decodeXMLComponent('&lt;a&gt;') AS d
SELECT ngrams('abcd', 2) AS a, tokens('a b-c') AS b, arrayStringConcat(arrayMap(x -> upper(left(x, 1)), splitByChar(' ', 'hello big world'))) AS c
SELECT toValidUTF8('ok') AS a, isValidUTF8('ok') AS b, firstLine('a\nb') AS c, byteHammingDistance('abc', 'abd') AS d, startsWithUTF8('äb', 'ä') AS e
SELECT countIf(fee > 5000) AS a, sumIf(fee, success) AS b, avgIf(compute_units, success) AS c, maxIf(fee, NOT success) AS d, minIf(fee, success) AS e, uniqExactIf(fee_payer, success) AS f FROM transactions
SELECT anyIf(kind, kind = 'sol') AS a, groupUniqArrayIf(kind, kind != 'sol') != [] AS b, argMaxIf(slot, slot, amount > 0) AS c, countDistinctIf(mint, amount > 0) AS d FROM token_transfers
SELECT sumOrNull(amount) AS a, avgOrNull(amount) AS b, maxOrNull(slot) AS c, countOrNull() AS d, minOrDefault(slot) AS e FROM token_transfers WHERE slot = 0
SELECT sumOrNullIf(fee, fee > 1000000000) AS a, sumIfOrNull(fee, fee > 0) > 0 AS b FROM transactions
SELECT sumDistinct(decimals) AS a, countDistinct(decimals) AS b, avgDistinct(decimals) AS c, groupArrayDistinct(decimals) != [] AS d FROM token_transfers
SELECT count(DISTINCT mint) AS a, count(DISTINCT mint, kind) AS b, sum(DISTINCT decimals) AS c FROM token_transfers
SELECT argMin(signature, (fee, slot, tx_index)) AS cheap, argMax(signature, (fee, slot, tx_index)) AS dear FROM transactions
SELECT slot, argMax(tx_index, fee) = argMax(tx_index, fee) AS s, argMin(fee, tx_index) AS first_fee FROM transactions GROUP BY slot ORDER BY slot LIMIT 3
SELECT quantiles(0.25, 0.5, 0.75)(fee) AS q, quantileExact(0.9)(compute_units) AS p90, median(compute_units) AS m FROM transactions
SELECT quantilesExact(0.1, 0.9)(fee) AS a, quantileExactHigh(0.5)(fee) AS b, quantileExactLow(0.5)(fee) AS c, quantileExactExclusive(0.5)(fee) AS d, quantileExactInclusive(0.5)(fee) AS e FROM transactions
SELECT quantileExactWeighted(0.5)(number, number + 1) AS a, medianExact(number) AS c FROM numbers(10)
SELECT quantileIf(0.5)(compute_units, success) AS a, quantilesIf(0.5, 0.9)(fee, fee > 0) AS b, quantileExactIf(0.5)(fee, success) AS c FROM transactions
SELECT uniqExact(fee_payer) AS a, uniq(fee_payer) AS b, uniqExact(slot, tx_index) AS c, uniqCombined(12)(fee_payer) AS d, uniqHLL12(kind) AS e FROM transactions AS t INNER JOIN token_transfers AS x USING (slot, tx_index)
SELECT round(corr(fee, compute_units), 6) AS a, round(covarPop(fee, compute_units), 3) AS b, round(covarSamp(fee, compute_units), 3) AS c FROM transactions
SELECT avgWeighted(decimals, amount) AS w, avgWeighted(number, number) AS n FROM (SELECT decimals, amount, toUInt64(decimals) AS number FROM token_transfers)
SELECT round(stddevPop(fee), 6) AS a, round(stddevSamp(fee), 6) AS b, round(varPop(fee), 3) AS c, round(varSamp(fee), 3) AS d FROM transactions
SELECT skewPop(number) AS a, kurtPop(number) AS b, skewSamp(number) AS c, kurtSamp(number) AS d FROM numbers(10)
SELECT simpleLinearRegression(number, number * 2 + 1).2 AS b, simpleLinearRegression(number, number * 2).1 AS k FROM numbers(10)
SELECT groupBitOr(decimals) AS a, groupBitAnd(decimals) AS b, groupBitXor(decimals) AS c FROM token_transfers
SELECT entropy(kind) AS e, boundingRatio(slot, amount) >= 0 AS r FROM token_transfers
SELECT sumWithOverflow(decimals) AS a, sumKahan(toFloat64(decimals)) AS b, sumCount(decimals) AS c FROM token_transfers
SELECT maxIntersections(number, number + 3) AS a FROM numbers(5)
SELECT windowFunnel(100)(block_time, kind = 'sol', kind = 'transferChecked') AS level FROM token_transfers
SELECT retention(kind = 'sol', kind = 'mintTo', kind = 'none') AS r FROM token_transfers
SELECT groupConcat(',')(kind) AS k FROM (SELECT DISTINCT kind FROM token_transfers ORDER BY kind)
SELECT singleValueOrNull(x) AS a FROM (SELECT 5 AS x)
SELECT any(x) AS a, any_value(x) AS b, last_value(x) AS c FROM (SELECT 7 AS x FROM numbers(3))
SELECT kind, count() AS n, sum(amount) AS s FROM token_transfers GROUP BY kind WITH ROLLUP ORDER BY kind, n
SELECT kind, decimals, count() AS n FROM token_transfers GROUP BY GROUPING SETS ((kind), (decimals), ()) ORDER BY kind, decimals, n
SELECT kind, grouping(kind) AS g, count() AS n FROM token_transfers GROUP BY ROLLUP(kind) ORDER BY g, kind
SELECT kind, count() AS n FROM token_transfers GROUP BY kind WITH TOTALS ORDER BY n DESC, kind
SELECT kind, max(amount) AS m FROM token_transfers GROUP BY kind HAVING m > 0 AND count() > 1 ORDER BY kind
SELECT 1 AS a, 2 AS b GROUP BY ALL HAVING b > 1
SELECT sum(fee) FILTER (WHERE success) AS ok, count(*) FILTER (WHERE NOT success) AS bad FROM transactions
SELECT uniqExactMerge(s) AS u FROM (SELECT uniqExactState(fee_payer) AS s FROM transactions GROUP BY slot)
SELECT sumMerge(s) AS total FROM (SELECT slot, sumState(fee) AS s FROM transactions GROUP BY slot)
SELECT toUInt8OrZero('300') AS a, toUInt8OrNull('x') AS b, toInt32OrDefault('y', toInt32(7)) AS c, toFloat64OrNull('1.5e3') AS d, toUInt64OrZero('18446744073709551615') AS e
SELECT CAST('42' AS UInt16) AS a, CAST(3.9 AS Int32) AS b, '7'::UInt8 AS c, CAST('2024-01-01', 'Date') AS d, CAST(1, 'String') AS e
SELECT toDecimal64('12.345', 2) AS a, toDecimal32(1, 4) AS b, toDecimal128('0.1', 10) AS c, toDecimal64(1.5, 3) * 2 AS d
SELECT toDecimal64(10, 2) / toDecimal64(3, 2) AS a, toDecimal64(1, 2) + toDecimal32(1, 4) AS b, toTypeName(toDecimal64(1, 2) * toDecimal64(1, 3)) AS c
SELECT toTypeName(1) AS a, toTypeName(-1) AS b, toTypeName(1.0) AS c, toTypeName('x') AS d, toTypeName([1, -1]) AS e, toTypeName((1, 'a')) AS f, toTypeName(NULL) AS g, toTypeName(now()) AS h
SELECT toTypeName(sum(fee)) AS a, toTypeName(avg(fee)) AS b, toTypeName(count()) AS c, toTypeName(max(block_time)) AS d, toTypeName(groupArray(kind)) AS e, toTypeName(any(success)) AS f FROM transactions AS t INNER JOIN token_transfers AS x USING (slot, tx_index)
SELECT reinterpretAsUInt32('abcd') AS a, reinterpretAsString(1633837924) AS b, reinterpretAsInt8('z') AS c
SELECT toString(toUUID('61f0c404-5cb3-11e7-907b-a6006ad3dba0')) AS b, toUUIDOrNull('bad') AS c
SELECT toInt8(127) + 1 AS a, toUInt8(255) + 1 AS b, toUInt8(1) - 2 AS c, toInt32(7) / 2 AS d, -toUInt8(5) AS e
SELECT accurateCast(5, 'UInt8') AS a, accurateCastOrNull(300, 'UInt8') AS b, accurateCastOrDefault(-1, 'UInt8') AS c
SELECT toBool('true') AS a, toBool(0) AS b, true AND false AS c, CAST(1 AS Bool) AS d, NOT true AS e, true = 1 AS f
SELECT toNullable(1) AS a, toLowCardinality('x') AS b, toString(1.5) AS c, toString(toDate('2024-01-01')) AS d, toString([1, 2]) AS e, toString(true) AS f
SELECT CAST([1, 2] AS Array(Float32)) AS a, CAST((1, 'x') AS Tuple(UInt8, String)) AS b, CAST(NULL AS Nullable(UInt8)) AS c, CAST('[1,2]' AS Array(UInt8)) AS d
SELECT toInt64('5') AS a, toInt64OrNull('5.5') AS b, toUInt32(4.99) AS c, toFloat32('0.5') AS d, toInt16(-5) AS e
SELECT toDateTime('2024-01-01') AS a, toDate('2024-01-01 10:00:00') AS b, toDate(19723) AS c, toDateTime64('2024-01-01 00:00:00.5', 1, 'UTC') AS d
SELECT CAST('a' AS Enum8('a' = 1, 'b' = 2)) AS e, CAST(e, 'Int8') AS v
SELECT ifNull(NULL, 5) AS a, coalesce(NULL, NULL, 'x') AS b, nullIf(1, 1) AS c, assumeNotNull(toNullable(3)) AS d, isNull(NULL) AS e, isNotNull(1) AS f, NULL IS NULL AS g
SELECT if(NULL, 1, 2) AS a, NULL + 1 AS b, isZeroOrNull(0) AS d, 1 IS DISTINCT FROM NULL AS e, 1 <=> 1 AS f
SELECT b.slot, ifNull(r.lamports, -1) AS l, isNull(r.pubkey) AS missing FROM blocks AS b LEFT JOIN rewards AS r ON r.slot = b.slot + 1 ORDER BY b.slot, l LIMIT 4
SELECT count(x) AS a, count() AS b, sum(x) AS c, avg(x) AS d, groupArray(x) AS e FROM (SELECT if(number % 2 = 0, number, NULL) AS x FROM numbers(5))
SELECT x FROM (SELECT arrayJoin([3, NULL, 1]) AS x) ORDER BY x DESC NULLS FIRST
SELECT x FROM (SELECT arrayJoin([3, NULL, 1]) AS x) ORDER BY x NULLS LAST LIMIT 2
SELECT intDiv(7, 2) AS a, -7 % 3 AS b, modulo(7, 3) AS c, positiveModulo(-7, 3) AS d, intDivOrZero(1, 0) AS e, 7 DIV 2 AS f, 7 MOD 2 AS g, moduloOrZero(5, 0) AS h
SELECT round(3.14159, 2) AS a, round(1234, -2) AS b, floor(-1.5) AS c, ceil(1.2) AS d, trunc(-1.7) AS e, roundBankers(2.5) AS f, round(0.5) AS g, floor(3.14159, 2) AS h, ceiling(2.1) AS i
SELECT log(10) AS a, log2(8) AS b, log10(1000) AS c, ln(1) AS d, exp(1) AS e, exp2(3) AS f, exp10(2) AS g, sqrt(2) AS h, cbrt(27) AS i, pow(2, 10) AS j, power(2, 0.5) AS k
SELECT greatest(1, 5, 3) AS a, least(2.5, 1) AS b, abs(-5) AS c, sign(-3) AS d, greatest('a', 'b') AS e, max2(1, 2) AS f, min2(3, 4) AS g
SELECT sin(1) AS a, cos(1) AS b, tan(1) AS c, asin(0.5) AS d, acos(0.5) AS e, atan(1) AS f, atan2(1, 2) AS g, pi() AS h, e() AS i, degrees(pi()) AS j, radians(180) AS k, hypot(3, 4) AS l, sinh(1) AS m
SELECT factorial(5) AS a, gcd(12, 18) AS b, lcm(4, 6) AS c, isFinite(1 / 0) AS d, isNaN(0 / 0) AS e, isInfinite(1 / 0) AS f, ifNotFinite(1 / 0, 9) AS g
SELECT roundToExp2(1000) AS a, roundDuration(100) AS b, roundAge(30) AS c, roundDown(7, [1, 5, 10]) AS d, widthBucket(5, 0, 10, 5) AS e, width_bucket(10, 0, 10, 5) AS f
SELECT 1 / 3 AS a, 10 / 5 AS b, 2 * 3.5 AS c, 5 - 7 AS d, 1e3 AS e, 0x1F AS f, 0b101 AS g, 1_000 AS h, .5 AS i
SELECT divide(1, 4) AS a, multiply(2, 3) AS b, plus(1, 2) AS c, minus(1, 2) AS d, negate(5) AS e, tgamma(5) AS g, lgamma(3) AS h, sigmoid(0) AS i
SELECT bitAnd(12, 10) AS a, bitOr(12, 10) AS b, bitXor(12, 10) AS c, bitNot(toUInt8(1)) AS d, bitShiftLeft(1, 4) AS e, bitShiftRight(16, 2) AS f, bitTest(5, 2) AS g, bitCount(7) AS h
SELECT bitRotateLeft(toUInt8(129), 1) AS a, bitTestAll(7, 0, 1) AS b, bitTestAny(8, 0, 3) AS c, bitHammingDistance(5, 3) AS d, byteSwap(toUInt16(258)) AS f, bitmaskToArray(10) AS g, bitPositionsToArray(toUInt8(5)) AS h
SELECT hex(MD5('abc')) AS a, hex(SHA256('abc')) AS b, hex(SHA1('abc')) AS c
SELECT cityHash64('abc') AS a, cityHash64(1) AS b, cityHash64('a', 'b') AS c
SELECT cityHash64(fee_payer) % 4 AS bucket, count() AS c FROM transactions GROUP BY bucket ORDER BY bucket
SELECT IPv4NumToString(3232235777) AS a, IPv4StringToNum('192.168.1.1') AS b, isIPv4String('1.2.3') AS c, IPv4StringToNumOrNull('x') AS g
SELECT domain('https://www.example.com:8080/a/b?x=1#f') AS a, domainWithoutWWW('https://www.example.com/a') AS b, protocol('https://x.y') AS c, path('https://x.y/a/b?q=1') AS d, queryString('https://x.y/?q=1&r=2') AS e, extractURLParameter('https://x.y/?q=1&r=2', 'r') AS f, topLevelDomain('https://a.co.uk/') AS g, port('https://x.y:81/') AS h
SELECT extractURLParameters('http://a/?x=1&y=2') AS a, cutQueryString('http://a/b?x=1') AS b, netloc('http://u@a.b:80/c') AS g, fragment('http://a/#z') AS h
SELECT rand() >= 0 AS a, rand64() >= 0 AS b, length(randomString(5)) AS d, length(toString(generateUUIDv4())) AS e, randUniform(0, 1) < 1 AS f
SELECT count() AS c, min(number) AS a, max(number) AS b FROM numbers(5, 10)
SELECT * FROM (SELECT number, number * number AS sq FROM numbers(3) UNION ALL SELECT 100, 200) ORDER BY number
SELECT number FROM system.numbers WHERE number % 7 = 3 LIMIT 3
SELECT generate_series AS g FROM generate_series(1, 5, 2)
SELECT a, b FROM values('a UInt8, b String', (1, 'x'), (2, 'y')) ORDER BY a
SELECT * FROM VALUES('n Int32', 5, 6, 7) ORDER BY n DESC
SELECT x FROM (SELECT arrayJoin(range(3)) AS x) AS q WHERE x IN (SELECT number FROM numbers(2)) ORDER BY x
SELECT slot, tx_count FROM blocks WHERE tx_count = (SELECT max(tx_count) FROM blocks) ORDER BY slot LIMIT 2
SELECT slot FROM blocks WHERE slot NOT IN (SELECT slot FROM token_transfers) ORDER BY slot LIMIT 3
SELECT count() AS c FROM transactions WHERE (slot, tx_index) IN (SELECT slot, tx_index FROM token_transfers WHERE kind = 'sol')
SELECT count() AS c FROM token_transfers WHERE (kind, decimals) IN (('sol', 9), ('burn', 6))
SELECT count() AS c FROM transactions WHERE (slot, tx_index) GLOBAL NOT IN (SELECT slot, tx_index FROM token_transfers)
SELECT count() AS c FROM blocks AS b WHERE EXISTS (SELECT 1 FROM rewards WHERE lamports > 0)
SELECT slot FROM blocks AS b WHERE EXISTS (SELECT 1 FROM token_transfers AS x WHERE x.slot = b.slot AND x.kind = 'burn') ORDER BY slot LIMIT 3
SELECT slot, (SELECT count() FROM transactions) AS total, tx_count / total AS share FROM blocks ORDER BY slot LIMIT 2
WITH per_slot AS (SELECT slot, sum(fee) AS fees FROM transactions GROUP BY slot), stats AS (SELECT avg(fees) AS mean, stddevPop(fees) AS sd FROM per_slot) SELECT slot, fees, round((fees - mean) / sd, 4) AS z FROM per_slot CROSS JOIN stats ORDER BY z DESC, slot LIMIT 3
WITH 5000 AS base, (SELECT max(fee) FROM transactions) AS top SELECT countIf(fee > base) AS above, countIf(fee = top) AS at_top FROM transactions
WITH a AS (SELECT number AS n FROM numbers(5)), b AS (SELECT n * 2 AS n FROM a) SELECT a.n FROM a INNER JOIN b ON a.n = b.n ORDER BY a.n
WITH RECURSIVE t AS (SELECT 1 AS n UNION ALL SELECT n + 1 FROM t WHERE n < 5) SELECT sum(n) AS s FROM t
WITH x -> x * 2 AS dbl SELECT dbl(21) AS v
SELECT slot FROM (SELECT slot FROM blocks WHERE slot % 2 = 0 UNION DISTINCT SELECT slot FROM blocks WHERE slot % 3 = 0) ORDER BY slot LIMIT 4
SELECT slot FROM (SELECT slot FROM blocks INTERSECT SELECT slot FROM rewards) ORDER BY slot LIMIT 3
SELECT slot FROM (SELECT slot FROM blocks EXCEPT SELECT slot FROM token_transfers WHERE kind = 'sol') ORDER BY slot LIMIT 3
SELECT count() AS c FROM ((SELECT 1 AS x UNION ALL SELECT 1) UNION DISTINCT SELECT 2)
SELECT kind, n FROM (SELECT kind, count() AS n FROM token_transfers GROUP BY kind UNION ALL SELECT 'all', count() FROM token_transfers) ORDER BY n, kind
SELECT t.slot, t.tx_index, x.kind FROM transactions AS t INNER JOIN token_transfers AS x USING (slot, tx_index) ORDER BY t.slot, t.tx_index, x.ix_index, x.inner_index, x.kind LIMIT 4
SELECT a.slot, b.slot AS next FROM blocks AS a INNER JOIN blocks AS b ON b.parent_slot = a.slot ORDER BY a.slot LIMIT 3
SELECT a.number AS x, b.number AS y FROM numbers(2) AS a CROSS JOIN numbers(2) AS b ORDER BY x, y
SELECT a.number AS x, b.number AS y FROM numbers(3) AS a, numbers(3) AS b WHERE a.number < b.number ORDER BY x, y
SELECT t.slot, count() AS n, any(b.leader) AS leader FROM transactions t JOIN blocks b ON t.slot = b.slot GROUP BY t.slot ORDER BY n DESC, t.slot LIMIT 3
SELECT b.slot, count(r.slot) AS rewards FROM blocks b LEFT OUTER JOIN rewards r ON b.slot = r.slot AND r.lamports > 0 GROUP BY b.slot ORDER BY b.slot LIMIT 3
SELECT l.number AS a, r.number AS b FROM numbers(3) AS l FULL OUTER JOIN (SELECT number + 1 AS number FROM numbers(3)) AS r ON l.number = r.number ORDER BY a, b
SELECT i.slot, t.fee, b.leader FROM instructions i JOIN transactions t ON i.slot = t.slot AND i.tx_index = t.tx_index JOIN blocks b ON b.slot = i.slot ORDER BY i.slot, i.tx_index, i.ix_index, i.inner_index LIMIT 3
SELECT t.leader != '' AS led, t.slot, p.slot AS before FROM (SELECT slot, leader FROM blocks) AS t ASOF LEFT JOIN (SELECT slot, leader FROM blocks) AS p ON t.leader = p.leader AND t.slot > p.slot ORDER BY t.slot LIMIT 4
SELECT slot FROM blocks SEMI LEFT JOIN token_transfers USING (slot) ORDER BY slot LIMIT 2
SELECT x.kind, x.amount FROM token_transfers AS x ANY LEFT JOIN blocks AS b ON x.slot = b.slot ORDER BY x.slot, x.tx_index, x.ix_index, x.inner_index LIMIT 3
SELECT b.slot, r.n FROM blocks b JOIN (SELECT slot, count() AS n FROM transactions GROUP BY slot HAVING n > 1) r ON b.slot = r.slot AND b.tx_count >= r.n ORDER BY b.slot LIMIT 3
SELECT slot, success, fee FROM transactions FINAL WHERE success ORDER BY fee DESC, slot, tx_index LIMIT 3
SELECT slot FROM blocks ORDER BY slot DESC LIMIT 2 OFFSET 3
SELECT slot FROM blocks ORDER BY slot OFFSET 2 ROWS FETCH FIRST 3 ROWS ONLY
SELECT slot FROM blocks ORDER BY slot LIMIT 5, 2
SELECT DISTINCT kind, token_program FROM token_transfers ORDER BY ALL
SELECT DISTINCT ON (kind) kind, decimals FROM token_transfers ORDER BY kind, decimals
SELECT x FROM (SELECT arrayJoin(['b', 'A', 'a', 'B']) AS x) ORDER BY lower(x), x
SELECT kind, decimals FROM token_transfers GROUP BY 1, 2 ORDER BY 2, 1
SELECT * EXCEPT (blockhash, parent_blockhash, leader) FROM blocks ORDER BY slot LIMIT 1
SELECT * REPLACE (tx_count + 1 AS tx_count) FROM (SELECT slot, tx_count FROM blocks) ORDER BY slot LIMIT 1
SELECT COLUMNS('_count$') APPLY(sum) FROM blocks
SELECT t.* FROM (SELECT slot, fee FROM transactions ORDER BY slot, tx_index LIMIT 1) AS t
SELECT toDate(block_time) AS day, count() AS n FROM blocks GROUP BY day ORDER BY day WITH FILL FROM toDate('2023-11-13') TO toDate('2023-11-16')
SELECT number AS n, 'x' AS s FROM numbers(3) WHERE n != 1 ORDER BY n WITH FILL STEP 1 INTERPOLATE (s AS 'y')
SELECT CASE kind WHEN 'sol' THEN 'native' WHEN 'burn' THEN 'gone' ELSE 'token' END AS class, count() AS n FROM token_transfers GROUP BY class ORDER BY class
SELECT CASE WHEN fee > 10000 THEN 'high' WHEN fee > 5000 THEN 'mid' ELSE 'low' END AS band, count() AS n, sum(fee) AS s FROM transactions GROUP BY band ORDER BY band
SELECT multiIf(fee > 10000, 2, fee > 5000, 1, 0) AS band, transform(band, [0, 1], ['low', 'mid'], 'high') AS name, count() AS n FROM transactions GROUP BY band ORDER BY band
SELECT fee > 5000 ? 'priority' : 'base' AS c, count() AS n FROM transactions GROUP BY c ORDER BY c
SELECT tuple(1, 'a') AS t, (1, 2) = (1, 2) AS e, (1, 2) < (1, 3) AS l
SELECT untuple((5, 6))
SELECT tuplePlus((1, 2), (3, 4)) AS a, tupleConcat((1, 2), ('x', 'y')) AS c, L2Norm((3, 4)) AS d, cosineDistance([1.0, 0.0], [1.0, 0.0]) AS e, L2Distance([0, 0], [3, 4]) AS f
SELECT formatReadableSize(123456789) AS a, formatReadableQuantity(1234567) AS b, formatReadableDecimalSize(1500) AS d
SELECT formatReadableTimeDelta(3700) AS a, formatReadableTimeDelta(61) AS b, formatReadableTimeDelta(90061) AS c
SELECT materialize(5) AS c, identity('x') AS d, ignore(1, 2) AS e, isConstant(1) AS g
SELECT quantile(0.5)(number) AS a, quantileTiming(0.5)(number) AS b, quantileBFloat16(0.5)(number) > 0 AS c FROM numbers(101)
SELECT least(toDate('2024-01-01'), toDate('2023-01-01')) AS a, greatest(toDateTime('2024-01-01 00:00:00', 'UTC'), toDateTime('2023-01-01 00:00:00', 'UTC')) AS b, toDate('2024-01-01') < toDateTime('2024-01-01 00:00:01', 'UTC') AS c
SELECT bitAnd(slot, 1) AS odd, count() AS n, groupArray(slot % 10) AS d FROM (SELECT slot FROM blocks ORDER BY slot) GROUP BY odd ORDER BY odd
SELECT d8, hex(d8) AS h, count() AS n FROM instructions WHERE d8 != 0 GROUP BY d8 ORDER BY n DESC, d8 LIMIT 3
SELECT program_id, countIf(inner_index = -1) AS outer_calls, countIf(inner_index >= 0) AS inner_calls, uniqExact(signature) AS txs FROM instructions GROUP BY program_id ORDER BY txs DESC, program_id LIMIT 5
SELECT mint, sum(toInt128(amount)) AS raw, sum(amount / pow(10, decimals)) AS ui FROM token_transfers WHERE mint != '' GROUP BY mint ORDER BY raw DESC, mint LIMIT 3
SELECT owner, sum(delta) AS net FROM (SELECT to_owner AS owner, toInt64(amount) AS delta FROM token_transfers WHERE kind = 'sol' UNION ALL SELECT from_owner, -toInt64(amount) FROM token_transfers WHERE kind = 'sol') GROUP BY owner ORDER BY net DESC, owner LIMIT 4
SELECT account, sum(post - pre) AS diff, countIf(signed) AS signed_txs FROM account_activity WHERE mint = '' GROUP BY account ORDER BY diff DESC, account LIMIT 3
SELECT account, argMax(post, (slot, tx_index)) AS balance, max(block_time) AS last_seen FROM account_activity WHERE mint = '' GROUP BY account ORDER BY balance DESC, account LIMIT 3
SELECT leader, count() AS blocks, sum(tx_count) AS txs, round(avg(vote_tx_count), 2) AS votes FROM blocks GROUP BY leader ORDER BY blocks DESC, leader LIMIT 3
SELECT intDiv(toUnixTimestamp(block_time), 5) * 5 AS bucket, toDateTime(bucket) AS t, count() AS n FROM transactions GROUP BY bucket ORDER BY bucket LIMIT 3
SELECT toUInt64(toUnixTimestamp(toStartOfMinute(block_time))) * 1000 AS t, countIf(success) / count() AS success_rate FROM transactions GROUP BY t ORDER BY t
SELECT t, groupArray((version, n)) AS series FROM (SELECT toStartOfMinute(block_time) AS t, version, count() AS n FROM transactions GROUP BY t, version ORDER BY t, version) GROUP BY t ORDER BY t
SELECT version, count() * 100.0 / sum(count()) OVER () AS pct FROM transactions GROUP BY version ORDER BY version
SELECT avg(gap) AS mean_gap, max(gap) AS max_gap FROM (SELECT toInt64(block_time) - toInt64(lagInFrame(block_time, 1, block_time) OVER (ORDER BY slot)) AS gap FROM blocks)
SELECT slot - parent_slot - 1 AS skipped, count() AS n FROM blocks GROUP BY skipped ORDER BY skipped
SELECT length(log_messages) AS lines, count() AS n FROM transactions GROUP BY lines ORDER BY lines LIMIT 3
SELECT arrayJoin(arrayFilter(l -> l LIKE '%invoke [1]%', log_messages)) AS line, count() AS n FROM transactions GROUP BY line ORDER BY n DESC, line LIMIT 3
SELECT arrayElement(splitByChar(' ', line), 2) AS program, count() AS n FROM transactions ARRAY JOIN log_messages AS line WHERE startsWith(line, 'Program ') GROUP BY program ORDER BY n DESC, program LIMIT 3
SELECT sum(arrayCount(l -> position(l, 'failed') > 0, log_messages)) AS failures FROM transactions
SELECT if(fee = 0, 0, compute_units / fee) AS cu_per_lamport, signature FROM transactions ORDER BY cu_per_lamport DESC, signature LIMIT 2
SELECT lamports > 0 AS paid, groupArray(DISTINCT reward_type) != [] AS t, min(commission) AS c FROM rewards GROUP BY paid ORDER BY paid
SELECT cutFragment('http://a/b#c') AS a, currentDatabase() AS d, version() != '' AS v
SELECT '\d+' AS a, match('a1', '\d') AS b, 'a\%b' LIKE 'a\%b' AS c
SELECT slot, tx_count FROM blocks AS a INNER JOIN rewards AS b ON a.slot = b.slot ORDER BY slot, tx_count LIMIT 2
SELECT block_time, tx_count, FROM blocks ORDER BY slot LIMIT 1
SELECT slot, sum(tx_count) OVER (ORDER BY block_time RANGE BETWEEN 2 PRECEDING AND CURRENT ROW) AS s FROM blocks ORDER BY slot LIMIT 3
SELECT toStartOfInterval(toDateTime64(block_time, 3), INTERVAL 500 MILLISECOND) AS t FROM blocks ORDER BY t LIMIT 1
SELECT toUInt8(300) AS a, toInt8(200) AS b, toUInt32(-1) AS c, CAST(257 AS UInt8) AS d
SELECT toString(1.0) AS a, toString(0.1 + 0.2) AS b, toString(1e20) AS c, toString(1e-7) AS d, toString(123456789.5e-13) AS e, toString(-1.5e25) AS f
SELECT * FROM blocks WHERE slot = 1001
SELECT (SELECT max(slot) FROM transactions AS t WHERE t.slot <= b.slot) AS m, slot FROM blocks AS b ORDER BY slot LIMIT 2
SELECT arraySort(x -> x.2, [('a', 3), ('b', 1)]) AS a, arrayMap(t -> t.1, [('a', 3), ('b', 1)]) AS b
SELECT formatReadableQuantity(sum(amount)) AS a, countIf(amount > 1000) AS n FROM token_transfers
SELECT toDate(block_time) AS d, sum(count()) OVER (ORDER BY toDate(block_time)) AS cumulative FROM transactions GROUP BY d ORDER BY d
SELECT kind, count() AS n, n / sum(n) OVER () AS share FROM token_transfers GROUP BY kind ORDER BY kind
SELECT replaceRegexpOne(log, '^Program (\\w+) .*$', '\\1') AS p, count() AS n FROM transactions ARRAY JOIN log_messages AS log GROUP BY p ORDER BY n DESC, p LIMIT 3
SELECT extract(log, 'consumed (\d+) of') AS cu, toUInt64OrZero(cu) AS n FROM transactions ARRAY JOIN log_messages AS log WHERE log LIKE '%consumed%' ORDER BY n DESC, cu LIMIT 2
SELECT toString((1, 'a')) AS a, toString(map('a', 1)) AS b, concat('x', toString([1, NULL, 2])) AS c, toString(['it\'s', 'b']) AS d, toString([[1], []]) AS e, toString([toNullable(1.5)]) AS f
SELECT countArray([1, NULL]) AS a, groupArrayArray([1, NULL]) AS b, sumArray([1, NULL]) AS c, anyArray([NULL, 3]) AS d
SELECT sumMap(['a', 'b'], [1, 0]) AS a, sumMap(['x', 'y'], [toInt32(number) - 1, 1]) AS b, sumMap(map('k', 0)) AS c, minMap(['a'], [0]) AS d FROM numbers(3)
SELECT a, toTypeName(a) AS t FROM (SELECT toUInt8(1) AS a) x INNER JOIN (SELECT toUInt64(1) AS a) y USING (a) ORDER BY a
SELECT count() FROM blocks b FULL JOIN (SELECT slot + 5 AS slot FROM blocks) r USING (slot) WHERE b.slot IS NULL
SELECT parseDateTimeBestEffortOrNull('1704438489123') AS a, parseDateTimeBestEffortOrNull('5 Jan 2024 7:08 PM') AS b, parseDateTimeBestEffortOrNull('05/01/2024') AS c, parseDateTimeBestEffortOrNull('Fri, 05 Jan 2024 07:08:09 GMT') AS d, parseDateTimeBestEffortOrNull('2024-01-05 07:08:09 UTC') AS e, parseDateTimeBestEffortOrNull('2024/01/05') AS f, parseDateTimeBestEffortOrNull('24-01-05') AS g, parseDateTimeBestEffortOrNull('2024-01-05 07') AS h, parseDateTimeBestEffortOrNull('2024') AS i, parseDateTimeBestEffortOrNull('2024-01') AS j
SELECT quantile(0.5)(x) AS a, max(x) AS b, sum(x = nan) AS c FROM (SELECT arrayJoin([1, nan, inf, -inf]) AS x)
SELECT a, toTypeName(a) AS t FROM (SELECT toUInt8(1) AS a) x FULL JOIN (SELECT toUInt64(300) AS a) y USING (a) ORDER BY a
SELECT * FROM (SELECT arrayJoin([1, 2]) AS a, 2 AS b) x FULL JOIN (SELECT arrayJoin([2, 3]) AS a, 3 AS c) y USING (a) ORDER BY a
SELECT NOT(5) = 1 AS a, NOT (5) = 1 AS b, not(1) + 1 AS c, NOT (1) AND 1 AS d
SELECT toDateTime('2024-01-05 05:08:09') = '2024-01-05 07:08:09+02:00' AS a

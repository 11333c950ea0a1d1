import { foldName } from '../../query/sql-tokens.ts'

/**
 * Functions that a customer may call on the operator's ClickHouse, by their names in lower case. The policy refuses every other one: some of the
 * server's two thousand functions open connections, read files and dictionaries, sleep, or show data of the server and of other users.
 */

function words(text: string): readonly string[] {
  return text.trim().split(/\s+/)
}

const AGGREGATES = words(`
  count sum avg min max any anylast anyheavy first_value last_value argmin argmax uniq uniqexact uniqcombined uniqcombined64 uniqhll12
  uniqthetasketch grouparray groupuniqarray grouparraysample grouparraymovingsum grouparraymovingavg groupbitand groupbitor groupbitxor
  groupbitmap median medianexact quantile quantiles quantileexact quantilesexact quantileexactlow quantileexacthigh
  quantileexactweighted quantiletiming quantiletimingweighted quantiledeterministic quantiletdigest quantilestdigest
  quantiletdigestweighted topk topkweighted sumwithoverflow sumkahan summap minmap maxmap varpop varsamp stddevpop stddevsamp covarpop
  covarsamp corr skewpop skewsamp kurtpop kurtsamp histogram sequencematch sequencecount windowfunnel retention deltasum
  deltasumtimestamp boundingratio simplelinearregression exponentialmovingaverage intervallengthsum entropy sumcount avgweighted
`)
const WINDOWS = words(`
  row_number rank dense_rank percent_rank cume_dist ntile lag lead laginframe leadinframe nth_value
`)
const NUMBERS = words(`
  plus minus multiply divide intdiv intdivorzero modulo moduloorzero negate abs gcd lcm round floor ceil ceiling trunc truncate
  roundbankers rounddown roundtoexp2 roundduration sign sqrt cbrt exp exp2 exp10 log ln log2 log10 pow power pi e sin cos tan asin acos
  atan atan2 sinh cosh tanh degrees radians greatest least isnan isfinite isinfinite bitand bitor bitxor bitnot bitshiftleft
  bitshiftright bittest bitcount max2 min2 factorial
`)
const CONDITIONS = words(`
  if multiif ifnull nullif coalesce isnull isnotnull isnullable iszeroornull assumenotnull tonullable not and or xor equals notequals
  less greater lessorequals greaterorequals like notlike ilike notilike
`)
const CONVERSIONS = words(`
  cast accuratecast accuratecastornull accuratecastordefault touint8 touint16 touint32 touint64 touint128 touint256 toint8 toint16
  toint32 toint64 toint128 toint256 touint8orzero touint16orzero touint32orzero touint64orzero toint8orzero toint16orzero toint32orzero
  toint64orzero touint8ornull touint16ornull touint32ornull touint64ornull toint8ornull toint16ornull toint32ornull toint64ornull
  tofloat32 tofloat64 tofloat32orzero tofloat64orzero tofloat32ornull tofloat64ornull todecimal32 todecimal64 todecimal128 todecimal256
  todecimalstring tostring tofixedstring tobool totypename tolowcardinality reinterpretasuint64 reinterpretasuint32 reinterpretasuint128
  reinterpretasuint256 reinterpretasint64 reinterpretasint128 reinterpretasstring reinterpret tointervalsecond tointervalminute
  tointervalhour tointervalday tointervalweek tointervalmonth tointervalyear formatreadablesize formatreadablequantity
  formatreadabletimedelta formatreadabledecimalsize
`)
const TEXTS = words(`
  length lengthutf8 char_length empty notempty lower upper lowerutf8 upperutf8 reverse reverseutf8 concat concatwithseparator concat_ws
  substring substr mid substringutf8 left right leftutf8 rightutf8 trim trimleft trimright trimboth ltrim rtrim startswith endswith
  position positionutf8 positioncaseinsensitive locate strpos countsubstrings multisearchany multisearchfirstindex match multimatchany
  extract extractall extractallgroups replace replaceone replaceall replaceregexpone replaceregexpall translate splitbychar
  splitbystring splitbyregexp arraystringconcat format hex unhex bin unbin base58encode base58decode trybase58decode base64encode
  base64decode trybase64decode char ascii leftpad rightpad lpad rpad tovalidutf8 isvalidutf8 hassubsequence regexpextract initcap
  simplejsonextractstring simplejsonextractuint simplejsonextractint simplejsonextractfloat simplejsonextractbool simplejsonextractraw
  simplejsonhas visitparamextractstring visitparamextractuint visitparamextractint visitparamextractfloat visitparamextractbool
  visitparamextractraw visitparamhas jsonhas jsonlength jsontype jsonextract jsonextractstring jsonextractuint jsonextractint
  jsonextractfloat jsonextractbool jsonextractraw jsonextractarrayraw jsonextractkeys jsonextractkeysandvalues isvalidjson tojsonstring
  json_value json_query json_exists
`)
const HASHES = words(`
  md5 sha1 sha224 sha256 sha512 cityhash64 siphash64 siphash128 halfmd5 farmhash64 farmfingerprint64 murmurhash2_64 murmurhash3_64
  xxhash32 xxhash64 xxh3 javahash hivehash crc32 inthash32 inthash64
`)
const TIMES = words(`
  now today yesterday todate todate32 todatetime todatetime64 todateornull todatetimeornull todateorzero todatetimeorzero tounixtimestamp
  tounixtimestamp64milli fromunixtimestamp fromunixtimestamp64milli parsedatetimebesteffort parsedatetimebesteffortornull
  parsedatetimebesteffortorzero parsedatetime toyear toquarter tomonth todayofyear todayofmonth todayofweek tohour tominute tosecond
  toisoweek toisoyear toweek toyearweek year quarter month week day hour minute second dayofweek dayofmonth dayofyear tostartofyear
  tostartofisoyear tostartofquarter tostartofmonth tostartofweek tomonday tostartofday tostartofhour tostartofminute tostartofsecond
  tostartoffiveminute tostartoffiveminutes tostartoftenminutes tostartoffifteenminutes tostartofinterval timeslot timeslots
  tolastdayofmonth tolastdayofweek totime toyyyymm toyyyymmdd toyyyymmddhhmmss torelativeyearnum torelativemonthnum torelativeweeknum
  torelativedaynum torelativehournum torelativeminutenum torelativesecondnum addyears addquarters addmonths addweeks adddays addhours
  addminutes addseconds subtractyears subtractquarters subtractmonths subtractweeks subtractdays subtracthours subtractminutes
  subtractseconds datediff date_diff timestamp_diff dateadd date_add datesub date_sub datetrunc date_trunc datename monthname
  formatdatetime dateformat date_format age makedate makedatetime totimezone timezoneof
`)
const LISTS = words(`
  array arrayjoin arrayconcat arrayelement arrayelementornull has hasall hasany hassubstr indexof countequal arrayenumerate
  arrayenumerateuniq arrayenumeratedense arraypopback arraypopfront arraypushback arraypushfront arrayslice arraysort arrayreversesort
  arraypartialsort arrayuniq arraydistinct arrayintersect arrayunion arrayreverse arrayflatten flatten arraycompact arrayzip arraymap
  arrayfilter arrayexists arrayall arraycount arraysum arrayavg arraymin arraymax arrayproduct arrayfirst arrayfirstindex arraylast
  arraylastindex arraycumsum arraycumsumnonnegative arraydifference arrayfill arrayreversefill arraysplit arrayreversesplit arrayreduce
  arrayfold arrayauc arrayshuffle emptyarraystring emptyarrayuint64 range tuple tupleelement untuple map mapkeys mapvalues mapcontains
  mapadd mapsubtract mapfromarrays mapfilter mapapply
`)
const OTHERS = words(`
  currentdatabase ignore identity materialize tocolumntypename runningaccumulate runningdifference neighbor rownumberinallblocks
  rownumberinblock bar transform finalizeaggregation rand rand32 rand64 randuniform generateuuidv4 bitmapbuild bitmaptoarray
  bitmapcardinality bitmapcontains bitmapand bitmapor grouping widthbucket width_bucket
`)
const CLICKHOUSE_FUNCTIONS: ReadonlySet<string> = new Set([
  ...AGGREGATES,
  ...WINDOWS,
  ...NUMBERS,
  ...CONDITIONS,
  ...CONVERSIONS,
  ...TEXTS,
  ...HASHES,
  ...TIMES,
  ...LISTS,
  ...OTHERS,
])

/** Combinators: suffixes of aggregate function names, such as `sumIf`. */
const COMBINATORS = words('simplestate if array map distinct ornull ordefault foreach state merge argmin argmax')
/** Longer than every function name with its combinators. */
const NAME_LENGTH_MAX = 100

const AGGREGATE_NAMES: ReadonlySet<string> = new Set(AGGREGATES)

export function isClickHouseFunction(name: string): boolean {
  if (name.length > NAME_LENGTH_MAX) return false
  let rest = foldName(name)
  if (CLICKHOUSE_FUNCTIONS.has(rest)) return true
  for (;;) {
    const combinator = COMBINATORS.find((ending) => rest.endsWith(ending))
    if (combinator === undefined) return false
    rest = rest.slice(0, -combinator.length)
    if (AGGREGATE_NAMES.has(rest)) return true
  }
}

/** The only table function that is allowed: it reads nothing. */
export const CLICKHOUSE_TABLE_FUNCTIONS: ReadonlySet<string> = new Set(['numbers'])

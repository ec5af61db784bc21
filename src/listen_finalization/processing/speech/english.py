"""Word lists of English grammar and of what people do, plan and file. Data only."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from listen_finalization.processing.speech.languages import pairs, words

CLOSERS = words(
    """
    and or but so because if with to of the a an that which i we you like just then yeah than by
    """
)
"""English words that a broken-off sentence ends with."""

EMPTY_PAIRS = pairs(
    """
    i mean, you know, you see, let's see, i guess, all right, of course, i dunno, first of
    """
)
"""Openings of two English words that say nothing."""

REAL_PAIRS = pairs(
    """
    so far, so many, so much, or else, well done, no one, no problem, no doubt, no matter, right
    side, great idea, good idea, now that, no pain, cool down, sure thing, because of, no more,
    plus or, no need, right hand, right now
    """
)
"""Pairs of English words in which an opener is more than an opener."""

SHORT_WORDS = words(
    """
    a i o an the to of in on at as is it its go got he her his she we you they them there then be
    been by do does for from good had has have how if may me men more my no not now off one or our
    out over own see so some such than that this too two up us use was way well were what when who
    why will with work all any are and also but can come day even every get give just know like
    look make man play plan put read real run say set time turn under very want year user side
    test cost car form part pass point back oh ok okay yeah yes hi bye dad mum mom am pm tv dr mr
    mrs ms vs km kg cm db hz pc cd app web art ear eat end age act add ago air bad bag bed big bit
    box boy bus buy cup cut die dog dry due egg eye far fat few fit fix fly fun gas hot ice job
    key kid law leg let lie lot low map mix net new nor old per pay pen pet pop pot raw red row
    sad sea sit six sky son sun tax tea ten tie tip top try van war wet win yet he's it's
    """
)
"""Short English words that are no false start of the word after them."""

NUMBERS = words(
    """
    zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen
    sixteen seventeen eighteen nineteen twenty thirty forty fifty sixty seventy eighty ninety
    hundred thousand million billion half dozen percent
    """
)

SUBJECTS = words(
    """
    i we you they he she it there i'm i'll i've we're we'll we've you're you'll they're it's
    that's
    """
)
"""English words that a restarted sentence begins with again."""

ARTICLES = words("the a an this that our your my his her their each")
DETERMINERS = words(
    """
    the a an this these those my your his her its our their some any each every no another of both
    new for in with on about two three four five by from into different main whole
    """
)
VERB_CUES = words(
    """
    to i you we they he she it can could will would should may might must don't doesn't didn't
    can't won't wouldn't let's i'll we'll you'll they'll i'd we'd you'd gonna wanna gotta and not
    just never who very really quite too more is are be was were it's pretty looks that's being
    """
)

POINTERS = words(
    """
    like which this that these those it it's that's he she they he's she's they're there there's
    here him them because if when where who unless even especially although though whereas between
    than until while
    """
)
"""A sentence that opens with one of these leans on what was said before."""

ACTION_VERBS = words(
    """
    add analyse analyze apply arrange ask assign attend bake book bring build buy calculate call
    cancel change check choose clean collect come compare complete confirm contact cook cover
    create cut decide define deliver deploy describe design develop discuss do document download
    draft draw drink drop eat email evaluate exercise explain explore figure file fill find finish
    fix follow gather generate get give go hire implement improve include increase inform install
    integrate invite investigate join keep label lay learn limit list mail make measure meet merge
    message move negotiate note notify optimise optimize order organise organize pay phone pick
    plan post prepare present print produce provide publish pull push put reach read rebook record
    redo reduce register release remind remove rename renew repair replace reply report request
    reschedule research reserve resend restart review revise rewrite run save schedule search sell
    send set share ship show sign simplify solve sort speak specify spend start stop store study
    submit subtract switch take talk test track train transcribe translate try update upload use
    verify visit walk wash watch work write
    """
)
"""Verbs that make a sentence a task; anything else after `will` or `should` is opinion."""

BASE_VERBS = ACTION_VERBS | words(
    """
    please let let's do don't thank thanks look see say think go come remember imagine wait hold
    press need want separate contain is are was were does did has have can could would guess seems
    seem looks means depends got mean stay know
    """
)
"""A sentence that opens with one of these is an order, a question, or lost its subject."""

DELIVERY_VERBS = words(
    """
    arrange ask assign attend book bring buy call cancel check collect compare complete confirm
    contact deliver deploy document download draft email evaluate exercise figure file finish fix
    follow gather implement improve install integrate investigate invite label mail measure merge
    negotiate notify order organise organize pay phone post prepare print produce provide publish
    register remind renew repair reply report request reschedule research resend review revise
    rewrite schedule send set share ship sign submit talk test train transcribe translate update
    upload verify write take hire drink reduce
    """
)
"""Verbs that hand something over or get something done, so that they need no date to be a task."""

SHOWING_VERBS = words(
    """
    explain show present describe talk start go move read note speak begin come look listen try
    switch push get put say keep take discuss stop watch walk learn add make give use run choose
    pick
    """
)
"""Verbs that in a meeting mostly speak of the meeting itself: a task only with a date."""

MOMENTARY = words(
    """
    now here quickly moment second minute slide slides screen whiteboard white-board cable
    microphone mike mic door pen lapel mouse aloud tea
    """
)
"""Words that tie a task to the room and the minute: it is over when the conversation is."""

MONTHS = (
    "january|february|march|april|may|june|july|august|september|october|november|december|"
    "jan|feb|mar|apr|jun|jul|aug|sept|sep|oct|nov|dec"
)
OCCASIONS = words(
    """
    meeting meet meetings appointment appointments call deadline due conference visit demo
    demonstration presentation trip flight exam exams birthday dinner lunch breakfast release
    launch interview workshop class lesson course vacation holiday party wedding review session
    submission talk follow-up checkup check-up surgery scan test standup stand-up retro sprint
    delivery ship ships deploy submit submitted arrive arrives arriving leave leaves back come
    coming travel travelling traveling fly flying scheduled schedule booked book see start starts
    begin begins evaluation
    """
)
"""Nouns and verbs that turn a date that was spoken of into an event."""

CATEGORIES: Mapping[str, frozenset[str]] = MappingProxyType(
    {
        "work": words(
            """
    project meeting team client customer manager marketing budget deadline product market company
    prototype presentation report agenda sales sprint release roadmap stakeholder colleague office
    contract design designer production profit cost costs business requirement requirements user
    users evaluation review ticket standup launch hire supplier
    """
        ),
        "technology": words(
            """
    software computer algorithm model data database server code bug deploy network neural
    recognition recognizer signal frame frames filter feature features vector gaussian gaussians
    training corpus digits transcription transcripts channel microphone spectral noise
    normalization latency system systems baseline disk script scripts file files format interface
    api test tests program programming linux perl acoustic speech energy classifier entropy
    probability
    """
        ),
        "education": words(
            """
    student students teacher professor class classes course homework exam exams school university
    thesis lecture lesson grade grades study studying semester tuition curriculum essay qualifying
    quals pupil pupils
    """
        ),
        "health": words(
            """
    doctor nurse patient pain medication medicine dose tablet tablets pill pills symptom symptoms
    blood pressure headache headaches fever cough allergy allergic hospital clinic treatment
    prescription diet exercise sleep therapy surgery diagnosis infection vaccine heart appetite
    nausea migraine physiotherapy
    """
        ),
        "finance": words(
            """
    bank loan mortgage invest investment investments savings tax taxes salary pension stock stocks
    shares insurance rent debt interest account invoice payment payments credit fund funds
    portfolio dividend
    """
        ),
        "social": words(
            """
    party dinner lunch friend friends weekend movie film concert game football birthday wedding
    restaurant bar drinks holiday vacation trip beach gossip barbecue picnic
    """
        ),
        "personal": words(
            """
    mom mum dad mother father wife husband daughter son kids baby home house garden kitchen dog
    cat grocery groceries family brother sister grandma grandpa apartment neighbour neighbor hobby
    diary shopping laundry recipe
    """
        ),
    }
)
"""The closed list of categories; `other` is what remains."""

JOINTS = words("and but so because then")
"""Where a stretch of English without punctuation may be cut."""

OWN_WORDS = words("i i'm i've i'll my me he she them")
"""English words that tie a sentence to its speaker or to what was said before."""

COMMON_STARTS = words(
    """
    maybe perhaps people another instead each most many both these those everyone everybody once
    while since although because before after when where whether anything something someone nobody
    nothing either neither here only first second then there's there'll they're we're we'll we've
    that's what's it's you're you'll can't don't let's its your their
    """
)
"""English words that lose their capital within a sentence."""

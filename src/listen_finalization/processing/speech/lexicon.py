"""Every word list of the extractive processor, by language. Data only.

Stop words are what carries no topic; the English list is long because spoken English is.
A language without a list of its own is read with generic rules: words of up to three letters
count as stop words.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


@dataclass(frozen=True, slots=True)
class Language:
    """What is known of one language. `stemmer` names a Snowball algorithm, or is empty."""

    code: str
    stemmer: str
    stop: frozenset[str]
    fillers: frozenset[str]
    openers: frozenset[str]

    @property
    def english(self) -> bool:
        """Tell whether the rules that read English grammar apply."""
        return self.code == "en"


_ENGLISH_GRAMMAR = """
a an the this that these those some any each every all both either neither no not nor none such
same other another own i you he she it we they me him her us them my your his its our their mine
yours hers ours theirs myself yourself himself herself itself ourselves themselves one ones who
whom whose which what when where why how whoever whatever whenever wherever is are was were be been
being am do does did done doing have has had having will would shall should can could may might
must ought need needs needed dare used and or but if because as until while of at by for with
about against between into through during before after above below to from up down in out on off
over under again further then once here there than too very just only also even still yet ever
never always often sometimes usually already almost quite rather really actually basically
probably maybe perhaps possibly certainly definitely obviously clearly exactly simply especially
literally totally completely pretty kind kinda sort sorta lot lots bit little much many more most
less least few several enough else so like well now today though although however anyway anyways
otherwise instead therefore thus hence whether since unless without within along across around
behind beside besides beyond near toward towards onto upon per via except plus minus versus
i'm you're he's she's it's we're they're i've you've we've they've i'd you'd he'd she'd we'd they'd
i'll you'll he'll she'll it'll we'll they'll that's that'll there's there'll here's what's who's
how's where's let's isn't aren't wasn't weren't don't doesn't didn't haven't hasn't hadn't won't
wouldn't shan't shouldn't can't cannot couldn't mustn't mightn't needn't ain't y'all gonna wanna
gotta dunno lemme gimme cause 'cause 'kay 'em til till em that'd there'd what're what'd who'd who've
"""

_ENGLISH_SPEECH = """
um uh er erm ah oh eh hm hmm mm mmm mhm mm-hmm uh-huh huh uh-oh yeah yep yup yes nope nah okay ok
alright right sure fine cool great good nice better best bad worse worst wow hey hi hello bye
goodbye please thanks thank sorry welcome morning evening afternoon guess guys guy everybody
everyone everything somebody someone something anybody anyone anything nobody nothing somewhere
anywhere thing things stuff way ways think thinks thinking thought know knows known knew knowing
say says said saying tell tells told talk talks talked talking speak mean means meant see sees saw
seen seeing look looks looked looking hear heard listen go goes going went gone come comes came
coming get gets got gotten getting give gives gave given giving take takes took taken taking make
makes made making put puts putting let lets try tries tried trying want wants wanted use uses using
work works worked working feel feels felt seem seems seemed happen happens happened keep keeps kept
start starts started stop stops begin turn turns turned show shows showed shown ask asks asked
asking call calls called bring brings brought leave leaves left run runs set sets find finds found
finding hope hoping wonder wondering remember forget suppose supposed believe agree agreed expect
imagine understand matter matters depend depends depending care mind wait hold hang add adds added
sit move moves moved moving play stay stick grab help helps decide decided doing does did
able certain different similar important interesting interested new old big small large huge long
short high low whole half full empty easy hard difficult possible impossible likely unlikely ready
main basic general particular specific single double last next first second third fourth fifth
final early late later soon ago back front side top bottom end ends ended middle part parts point
points case cases fact idea ideas question questions answer answers example examples reason reasons
problem problems issue issues word words number numbers place places person people man woman men
women kids folks time times minute minutes hour hours day days week weeks month months year years
tonight tomorrow yesterday moment while couple bunch couple pair ton tons amount level type types
kinds sorts rest piece pieces line lines step steps sense difference change changes changed
changing include includes included including consider considered discuss discussed discussing
continue check checked write writes wrote written read reads reading pick picked choose chose
chosen hand hands head true false wrong okay great funny nicely stupid crazy weird strange
perfect absolutely seriously honestly personally apparently hopefully unfortunately fortunately
specifically essentially generally mostly mainly together apart alone away forward straight ahead
fairly slightly somewhat somehow anymore whatsoever etcetera etc et cetera obvious clear sounds
sound sounded yourselves theirself bloody damn hell god gosh jeez boo yay ha haha oops ooh aah
whoa tada stuffs zero two three four five six seven eight nine ten eleven twelve thirteen fourteen
fifteen sixteen seventeen eighteen nineteen twenty thirty forty fifty sixty seventy eighty ninety
hundred thousand million billion dozen percent point plus s t d m re ve ll b c e f g h j k l n o p
q r v w x y z actual current previous recent quick quickly slow slowly happy glad afraid
cuz slide slides list lists info information meeting meetings discussion presentation version result results missing missed note noted start mention mentioned worry worried trouble deal view views guess
"""

_ENGLISH = Language(
    code="en",
    stemmer="english",
    stop=_words(_ENGLISH_GRAMMAR) | _words(_ENGLISH_SPEECH),
    fillers=_words(
        "um uh er erm ah eh hm hmm mm mmm mhm mm-hmm mm-mm uh-huh uh-oh huh umm uhh uhm ehm nnn ooh"
    ),
    openers=_words(
        "so yeah yep yes yup okay ok oh well and but or alright hey right now cool great anyway "
        "anyways actually basically also plus 'cause cause 'kay kay no nope hi hello sure because"
    ),
)


def _other(code: str, stemmer: str, stop: str, fillers: str, openers: str) -> Language:
    return Language(code, stemmer, _words(stop), _words(fillers), _words(openers))


_GERMAN = _other(
    "de",
    "german",
    "aber alle allem allen aller alles als also auch auf aus bei beim bin bis bist da damit dann das "
    "dass dein dem den denn der des dich die dies diese diesem diesen dieser dieses dir doch dort du "
    "durch ein eine einem einen einer eines einfach er es etwas euch eure für ganz gar gegen gerade "
    "genau gibt gut hab habe haben hat hatte hatten hier hin ich ihm ihn ihr ihre im immer in ist ja "
    "jetzt kann kannst kein keine können könnte machen macht mal man mehr mein meine mich mir mit "
    "muss müssen nach natürlich nein nicht nichts noch nur ob oder ohne schon sehr sein seine sich "
    "sie sind so soll sollen sollte über um und uns unser unsere unter viel vielleicht vom von vor "
    "wann war waren warum was weil weiß welche wenn wer werde werden wie wieder will wir wird wirklich "
    "wo wollen wurde würde würden zu zum zur zwar sagen sagt gesagt glaube denke",
    "äh ähm hm hmm mhm öh",
    "also ja nun gut okay ok genau und aber oder naja tja",
)

_FRENCH = _other(
    "fr",
    "french",
    "ai alors au aussi autre aux avec avez avoir avons bien bon ce cela ces cet cette chose comme "
    "comment dans de des deux dire dit donc du elle elles en encore es est et étaient était être eu "
    "eux fait faire faut il ils je jusque la là le les leur leurs lui ma mais me même mes moi mon ne "
    "nos notre nous on ont ou où oui par parce pas peu peut peux plus pour pourquoi quand que quel "
    "quelle quelque qui quoi rien sa sans se sera ses si son sont sous sur ta te tes toi ton tous tout "
    "toute très trop tu un une va vais voilà vont votre vous vraiment y c'est j'ai qu'il qu'on d'un "
    "d'une n'est l'on s'il ça",
    "euh heu hum hmm mmh bah",
    "alors donc oui et mais ben bon ok okay voilà",
)

_SPANISH = _other(
    "es",
    "spanish",
    "a al algo ahora así aquí aunque bien bueno cada como con creo cual cuando cómo cosa cosas de del "
    "desde después donde dos el él ella ellas ellos en entonces era eran es esa ese eso esta está "
    "están este esto estoy estos está fue gracias ha había hace hacer hacia han hasta hay he la las le "
    "les lo los más me mi mis mucho muy nada ni no nos nosotros o os otra otro para pero poco por "
    "porque puede puedo pues que qué quien quiero sea ser si sí sido sin sobre solo son su sus también "
    "tan tanto te tener tengo ti tiene tienen todo todos tu tú un una uno unos va vamos voy y ya yo",
    "eh em este mmm hmm",
    "bueno pues entonces y pero sí vale ok okay o",
)

_PORTUGUESE = _other(
    "pt",
    "portuguese",
    "a agora ainda algo ao aos aqui as assim até bem bom cada coisa coisas com como da das de dela dele "
    "depois do dos e é ela elas ele eles em então era essa esse esta está estão este eu faz fazer foi "
    "gente há isso isto já lá mais mas me mesmo meu minha muito muita na nada não nas nem no nos nós "
    "nossa nosso o onde os ou para pela pelo pode por porque pra quando que quem quero se ser seu sim "
    "só sobre sua também tem tenho ter tudo um uma uns vai vamos você vocês vou",
    "hum hã ah eh hmm ahn",
    "então bom e mas sim ok okay bem né",
)

_ITALIAN = _other(
    "it",
    "italian",
    "a abbiamo ad adesso ai al alla alle allora anche ancora avere bene c'è che chi ci ciò come con così "
    "cosa cose da dal dalla dei del della delle di dire dopo dove due e è ecco ed era erano essere fa "
    "fare fatto gli ha hai hanno ho i il in invece io la le lei lo loro lui ma me mi mia mio molto ne "
    "nel nella no noi non nostra nostro o ogni perché per però più poi può qua quale quando quanto "
    "quella quello questa queste questi questo qui se sei si sì sia sono sta stato su sua suo tra tu "
    "tutti tutto un una uno va vi voi",
    "eh ehm uhm mmm hmm",
    "allora e ma sì ecco quindi ok okay beh",
)

_DUTCH = _other(
    "nl",
    "dutch",
    "aan al alle als altijd ben bij daar dan dat de deze die dit doen door dus een eens en er even gaan "
    "gaat ge geen goed had heb hebben heeft heel hem het hier hij hoe hun ik in is ja je jij jullie kan "
    "kunnen maar me meer men met mij mijn moet moeten na naar nee niet niets nog nou nu of om omdat ons "
    "onze ook op over te tegen toch toen tot u uit uw van veel voor waar want waren was wat we wel welke "
    "werd wie wij wil willen worden wordt zal ze zich zij zijn zo zonder zou",
    "eh euh ehm hmm mmm",
    "dus ja nou en maar oké ok okay goed",
)

_STEMMERS = """
ar arabic ca catalan cs czech da danish el greek et estonian eu basque fi finnish ga irish hi hindi
hu hungarian hy armenian id indonesian lt lithuanian ne nepali no norwegian nb norwegian pl polish
ro romanian ru russian sr serbian sv swedish ta tamil tr turkish
""".split()

_KNOWN: Mapping[str, Language] = MappingProxyType(
    {
        known.code: known
        for known in (_ENGLISH, _GERMAN, _FRENCH, _SPANISH, _PORTUGUESE, _ITALIAN, _DUTCH)
    }
)
_STEMMER_OF = dict(zip(_STEMMERS[::2], _STEMMERS[1::2], strict=True))


def language_of(tag: str) -> Language:
    """Return what is known of a language tag such as `en-GB`; an unknown one has empty lists."""
    code = tag.replace("_", "-").split("-")[0].strip().lower()
    if code in _KNOWN:
        return _KNOWN[code]
    return Language(code, _STEMMER_OF.get(code, ""), frozenset(), frozenset(), frozenset())


CLOSERS = _words(
    "and or but so because if with to of the a an that which i we you like just then yeah than by"
)
"""English words that a broken-off sentence ends with."""

EMPTY_PAIRS = frozenset(
    (
        "i mean",
        "you know",
        "you see",
        "let's see",
        "i guess",
        "all right",
        "of course",
        "i dunno",
        "first of",
    )
)
"""Openings of two English words that say nothing."""

REAL_PAIRS = frozenset(
    (
        *(
            "so far",
            "so many",
            "so much",
            "or else",
            "well done",
            "no one",
            "no problem",
            "no doubt",
        ),
        *("no matter", "right side", "great idea", "good idea", "now that", "no pain", "cool down"),
        *("sure thing", "because of", "no more", "plus or", "no need", "right hand", "right now"),
    )
)
"""Pairs of English words in which an opener is more than an opener."""

SHORT_WORDS = _words(
    "a i o an the to of in on at as is it its go got he her his she we you they them there then be "
    "been by do does for from good had has have how if may me men more my no not now off one or our "
    "out over own see so some such than that this too two up us use was way well were what when who "
    "why will with work all any are and also but can come day even every get give just know like "
    "look make man play plan put read real run say set time turn under very want year user side "
    "test cost car form part pass point back oh ok okay yeah yes hi bye dad mum mom am pm tv dr mr "
    "mrs ms vs km kg cm db hz pc cd app web art ear eat end age act add ago air bad bag "
    "bed big bit box boy bus buy cup cut die dog dry due egg eye far fat few fit fix fly fun gas hot "
    "ice job key kid law leg let lie lot low map mix net new nor old per pay pen pet pop pot raw red "
    "row sad sea sit six sky son sun tax tea ten tie tip top try van war wet win yet he's it's"
)
"""Short English words that are no false start of the word after them."""

NUMBERS = _words(
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen "
    "sixteen seventeen eighteen nineteen twenty thirty forty fifty sixty seventy eighty ninety "
    "hundred thousand million billion half dozen percent"
)

SUBJECTS = _words(
    "i we you they he she it there i'm i'll i've we're we'll we've you're you'll they're it's that's"
)
"""English words that a restarted sentence begins with again."""

DETERMINERS = _words(
    "the a an this these those my your his her its our their some any each every no another of both "
    "new for in with on about two three four five by from into different main whole"
)
VERB_CUES = _words(
    "to i you we they he she it can could will would should may might must don't doesn't didn't "
    "can't won't wouldn't let's i'll we'll you'll they'll i'd we'd you'd gonna wanna gotta and not "
    "just never who very really quite too more is are be was were it's pretty looks that's being"
)

POINTERS = _words(
    "this that these those it it's that's he she they he's she's they're there there's here which "
    "him them because if when where who then"
)
"""A sentence that opens with one of these leans on what was said before."""

ACTION_VERBS = _words(
    """
    add analyse analyze apply arrange ask assign attend bake book bring build buy calculate call
    cancel change check choose clean collect come compare complete confirm contact cook cover create
    cut decide define deliver deploy describe design develop discuss do document download draft draw
    drink drop eat email evaluate exercise explain explore figure file fill find finish fix follow
    gather generate get give go hire implement improve include increase inform install integrate
    invite investigate join keep label lay learn limit list mail make measure meet merge message move
    negotiate note notify optimise optimize order organise organize pay phone pick plan post prepare
    present print produce provide publish pull push put reach read rebook record redo reduce
    register release remind remove rename renew repair replace reply report request reschedule
    research reserve resend restart review revise rewrite run save schedule search sell send set
    share ship show sign simplify solve sort speak specify spend start stop store study submit
    subtract switch take talk test track train transcribe translate try update upload use verify
    visit walk wash watch work write
    """
)
"""Verbs that make a sentence a task; anything else after `will` or `should` is opinion."""

BASE_VERBS = ACTION_VERBS | _words(
    """
    please let let's do don't thank thanks look see say think go come remember imagine wait hold press
    need want separate contain is are was were does did has have can could would guess seems seem looks
    means depends got mean stay know
    """
)
"""A sentence that opens with one of these is an order, a question, or lost its subject."""

MOMENTARY = _words(
    """
    now here quickly moment second minute slide slides screen whiteboard white-board cable microphone
    mike mic door pen lapel mouse aloud tea
    """
)
"""Words that tie a task to the room and the minute: it is over when the conversation is."""

DATE_WORDS = r"mon|tues|wednes|thurs|fri|satur|sun"
MONTHS = (
    "january|february|march|april|may|june|july|august|september|october|november|december|"
    "jan|feb|mar|apr|jun|jul|aug|sept|sep|oct|nov|dec"
)
OCCASIONS = _words(
    """
    meeting meet meetings appointment appointments call deadline due conference visit demo demonstration
    presentation trip flight exam exams birthday dinner lunch breakfast release launch interview
    workshop class lesson course vacation holiday party wedding review session submission talk
    follow-up checkup check-up surgery scan test standup stand-up retro sprint delivery ship ships
    deploy submit submitted arrive arrives arriving leave leaves back come coming travel travelling
    traveling fly flying scheduled schedule booked book see start starts begin begins evaluation
    """
)
"""Nouns and verbs that turn a date that was spoken of into an event."""

CATEGORIES: Mapping[str, frozenset[str]] = MappingProxyType(
    {
        "work": _words(
            """
            project meeting team client customer manager marketing budget deadline product market
            company prototype presentation report agenda sales sprint release roadmap stakeholder
            colleague office contract design designer production profit cost costs business
            requirement requirements user users evaluation review ticket standup launch hire supplier
            """
        ),
        "technology": _words(
            """
            software computer algorithm model data database server code bug deploy network neural
            recognition recognizer signal frame frames filter feature features vector gaussian
            gaussians training corpus digits transcription transcripts channel microphone
            spectral noise normalization latency system systems baseline disk script scripts file
            files format interface api test tests program programming linux perl
            acoustic speech energy classifier entropy probability
            """
        ),
        "education": _words(
            """
            student students teacher professor class classes course homework exam exams school university
            thesis lecture lesson grade grades study studying semester tuition curriculum essay
            qualifying quals pupil pupils
            """
        ),
        "health": _words(
            """
            doctor nurse patient pain medication medicine dose tablet tablets pill pills symptom
            symptoms blood pressure headache headaches fever cough allergy allergic hospital clinic
            treatment prescription diet exercise sleep therapy surgery diagnosis infection vaccine heart
            appetite nausea migraine physiotherapy
            """
        ),
        "finance": _words(
            """
            bank loan mortgage invest investment investments savings tax taxes salary pension stock stocks
            shares insurance rent debt interest account invoice payment payments credit fund funds
            portfolio dividend
            """
        ),
        "social": _words(
            """
            party dinner lunch friend friends weekend movie film concert game football birthday
            wedding restaurant bar drinks holiday vacation trip beach gossip barbecue picnic
            """
        ),
        "personal": _words(
            """
            mom mum dad mother father wife husband daughter son kids baby home house garden kitchen dog
            cat grocery groceries family brother sister grandma grandpa apartment neighbour neighbor
            hobby diary shopping laundry recipe
            """
        ),
    }
)
"""The closed list of categories; `other` is what remains."""

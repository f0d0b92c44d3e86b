"""The public names and where they are defined, for type checkers and for `__init__.py`, which loads each when used."""

from .attributes import Attribute as Attribute
from .best_arm import chance_of_best as chance_of_best
from .best_arm import loss_of_choosing as loss_of_choosing
from .best_arm import may_be_best as may_be_best
from .best_arm import most_lost as most_lost
from .best_arm import rank_bounds as rank_bounds
from .comparisons import compare as compare
from .delays import check_arrivals as check_arrivals
from .delays import check_news as check_news
from .drift import over_the_same_people as over_the_same_people
from .drift import trend as trend
from .evidence import Evidence as Evidence
from .fixed_sample import differences_at_end as differences_at_end
from .fixed_sample import means_at_end as means_at_end
from .multiplicity import arm_failures as arm_failures
from .multiplicity import control_failures as control_failures
from .multiplicity import discoveries as discoveries
from .multiplicity import holm as holm
from .multiplicity import pair_failures as pair_failures
from .nonresponse import check_responses as check_responses
from .nonresponse import corrections as corrections
from .nonresponse import tipping_point as tipping_point
from .nonresponse import worst_cases as worst_cases
from .observations import Observations as Observations
from .randomisation import check_balance as check_balance
from .randomisation import check_draws as check_draws
from .report import analyse as analyse
from .results import ArmEstimate as ArmEstimate
from .results import AtEnd as AtEnd
from .results import Check as Check
from .results import Comparison as Comparison
from .results import Corrections as Corrections
from .results import Difference as Difference
from .results import DifferenceAtEnd as DifferenceAtEnd
from .results import DrawCheck as DrawCheck
from .results import MeanAtEnd as MeanAtEnd
from .results import NewsCheck as NewsCheck
from .results import OverTheSamePeople as OverTheSamePeople
from .results import Report as Report
from .results import ResponseCheck as ResponseCheck
from .results import SameDifference as SameDifference
from .results import SameMean as SameMean
from .results import Trend as Trend
from .results import WorstCase as WorstCase

__all__: list[str]
